import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import type { Link } from '../../api/types';
import { Chart } from '../../charts/chart';
import { type RangeState, startRange, visible } from '../../charts/range';
import { chartSpecs } from '../../charts/spec';
import { useChanges, useDocument, useHistory, useRun } from '../../data/use';
import { Loading } from '../../ui/loading';
import { Events } from './eventlist';
import { concerning } from './events';
import { LinkHead } from './head';
import { ChartTools } from './tools';

/** Returns the link and direction of a name such as `adsl7.up`; the default is up. */
export function splitDirection(name: string): { link: string; direction: 'up' | 'down' } {
  const match = /^(.*)\.(up|down)$/.exec(name);
  if (!match) return { link: name, direction: 'up' };
  return { link: match[1] ?? name, direction: match[2] as 'up' | 'down' };
}

/** One direction of a link: its state, and charts with a shared time axis. */
export function LinkView({ direction: name }: { direction: string }) {
  const { link: linkName, direction } = splitDirection(name);
  const full = `${linkName}.${direction}`;
  const link = useDocument<Link>(`/v1/links/${encodeURIComponent(linkName)}`, 1000);
  const { history, version, failure } = useHistory(full);
  const changes = useChanges();
  const replays = useRun()?.replay !== undefined;
  const [state, setState] = useState<RangeState>(startRange);
  const canvases = useRef(new Map<string, HTMLCanvasElement>());
  const onCanvas = useCallback((id: string, canvas: HTMLCanvasElement | null) => {
    if (canvas) canvases.current.set(id, canvas);
    else canvases.current.delete(id);
  }, []);
  const onReset = useCallback(() => setState((before) => ({ ...before, zoom: null })), []);
  const events = useMemo(() => concerning(changes?.changes ?? [], full), [changes, full]);
  const markers = useMemo(() => events.map(({ at_s }) => at_s), [events]);
  const problem = link.failure ?? failure;
  if (problem && history.length === 0 && !link.value) {
    return (
      <>
        <h1>{full}</h1>
        <p class="problem">{problem.message}</p>
        <p>
          <a href="#/">All links</a>
        </p>
      </>
    );
  }
  const range = visible(state, history.last_s);
  return (
    <>
      <LinkHead name={linkName} direction={direction} link={link.value} view="link" />
      {failure && <p class="problem">{failure.message}</p>}
      <ChartTools
        name={full}
        history={history}
        state={state}
        onState={setState}
        canvases={canvases.current}
      />
      {history.length === 0 ? (
        <Loading label="Loading history" />
      ) : (
        chartSpecs.map((spec) => (
          <Chart
            key={spec.id}
            spec={spec}
            history={history}
            version={version}
            state={state}
            onState={setState}
            onReset={onReset}
            markers={markers}
            onCanvas={onCanvas}
          />
        ))
      )}
      {!replays && <Events events={events} range={range} onShow={setState} />}
    </>
  );
}
