import { useState } from 'preact/hooks';
import { ApiError } from '../../api/client';
import type { Scenario } from '../../api/types';
import { type TimelineEvent, timelineEnd, timelineOf } from '../../change/events';
import { useChanges, useConnection, useDocument, useTotals } from '../../data/use';
import { count, duration, runTime } from '../../format';

const nextShown = 8;
const asked = 200;

/** The scenario: past events, the current time, and upcoming events. */
export function Timeline({ mayChange }: { mayChange: boolean }) {
  const { value, failure } = useDocument<Scenario>(`/v1/scenario?limit=${asked}`, 1000);
  const changes = useChanges()?.changes ?? [];
  const now_s = useTotals()?.elapsed_s ?? value?.elapsed_s ?? 0;
  const events = timelineOf(changes, value, now_s);
  const next = events.filter((event) => !event.done);
  const pending = value?.events.length ?? 0;
  return (
    <section aria-labelledby="scenario-title">
      <div class="toolbar">
        <h2 id="scenario-title">Scenario</h2>
        {mayChange && pending > 0 && <Skip />}
        {value && value.skipped_s > 0 && (
          <span class="more">skipped ahead by {duration(value.skipped_s)}</span>
        )}
      </div>
      {failure && !value && <p class="problem">{failure.message}</p>}
      {events.length === 0 && value && <p class="more">No scenario and no changes.</p>}
      {events.length > 0 && <Track events={events} now_s={now_s} />}
      {next.length > 0 && (
        <ol class="events" aria-label="Upcoming events">
          {next.slice(0, nextShown).map((event) => (
            <li key={`${event.at_s} ${event.text}`}>
              <span class="num at">{runTime(event.at_s, 1)}</span>{' '}
              <span class="more num soon">in {duration(event.at_s - now_s)}</span>{' '}
              <code>{event.text}</code>
            </li>
          ))}
        </ol>
      )}
      {next.length > nextShown && (
        <p class="more">
          and {pending >= asked ? 'more than ' : ''}
          {count(next.length - nextShown)} more.
        </p>
      )}
      {events.length > 0 && next.length === 0 && <p class="more">No upcoming events.</p>}
    </section>
  );
}

function Skip() {
  const { client } = useConnection();
  const [problem, setProblem] = useState('');
  const skip = async (): Promise<void> => {
    try {
      await client.json('/v1/scenario/skip', { method: 'POST' });
      setProblem('');
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  };
  return (
    <>
      <button type="button" onClick={() => void skip()}>
        Skip to the next event
      </button>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

function Track({ events, now_s }: { events: TimelineEvent[]; now_s: number }) {
  const end = timelineEnd(events, now_s);
  const at = (time: number): string => `${(Math.min(time, end) / end) * 100}%`;
  const done = events.filter((event) => event.done).length;
  return (
    <div
      class="track"
      role="img"
      aria-label={`Timeline: ${count(done)} of ${count(events.length)} events done, at ${runTime(now_s)} of ${runTime(end)}`}
    >
      <div class="track-past" style={{ width: at(now_s) }} />
      {events.map((event) => (
        <span
          key={`${event.at_s} ${event.text}`}
          class={event.done ? 'tick done' : 'tick'}
          style={{ left: at(event.at_s) }}
          title={`${runTime(event.at_s, 1)} ${event.by}: ${event.text}`}
        />
      ))}
      <span class="cursor" style={{ left: at(now_s) }} />
      <span class="track-end num">{runTime(end)}</span>
      <span class="track-now num" style={{ left: at(now_s) }}>
        {runTime(now_s)}
      </span>
    </div>
  );
}
