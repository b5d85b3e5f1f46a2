import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { History } from '../data/history';
import { runTime } from '../format';
import { useThemeVersion } from '../theme';
import { ChartTable } from './charttable';
import { keyAction } from './keys';
import { chartHeight, plotOptions, withFirstFill } from './plot';
import { pan, type RangeState, visible, zoomBy, zoomTo } from './range';
import type { ChartSpec, SeriesSpec } from './spec';
import { summary } from './summary';

interface Props {
  spec: ChartSpec;
  history: History;
  version: number;
  state: RangeState;
  onState: (change: (before: RangeState) => RangeState) => void;
  onReset: () => void;
  markers: number[];
  /** Reports the canvas of the chart, for images of all charts. */
  onCanvas: (id: string, canvas: HTMLCanvasElement | null) => void;
}

/** A chart with its legend, its summary and its table. */
export function Chart(props: Props) {
  const { spec, history, version, state } = props;
  // The history object stays the same; its version shows changes.
  const series = useMemo(() => spec.series(history), [spec, history, version]);
  const [index, setIndex] = useState<number | null>(null);
  const [asTable, setAsTable] = useState(false);
  const [spoken, setSpoken] = useState('');
  const range = visible(state, history.last_s);
  const text = summary(spec, history, range);
  const { holder, plot } = usePlot(props, series, setIndex);
  const onKeyDown = (event: KeyboardEvent): void => {
    const action = plot.current && keyAction(event, plot.current);
    if (!action) return;
    event.preventDefault();
    if (action.kind === 'zoom') {
      props.onState((before) => zoomBy(before, history.last_s, action.about_s, action.factor));
    } else if (action.kind === 'pan') {
      props.onState((before) => pan(before, history.last_s, action.share));
    } else if (action.kind === 'reset') props.onReset();
    else setSpoken(valuesAt(spec, series, history, plot.current?.cursor.idx ?? null));
  };
  return (
    <section class="chart" aria-labelledby={`chart-${spec.id}`}>
      <div class="chart-head">
        <h2 id={`chart-${spec.id}`} title={spec.note}>
          {spec.title}
        </h2>
        <Legend spec={spec} series={series} history={history} index={index} range={range} />
        <button
          type="button"
          class="quiet"
          aria-expanded={asTable}
          onClick={() => setAsTable(!asTable)}
        >
          Table<span class="sr-only"> of {spec.title}</span>
        </button>
      </div>
      <div
        class="plot"
        role="group"
        aria-roledescription="chart"
        aria-label={`${spec.title}. Arrow keys move the cursor, plus and minus zoom, 0 resets`}
        aria-describedby={`summary-${spec.id}`}
        tabIndex={0}
        ref={holder}
        onKeyDown={onKeyDown}
        style={{ height: `${chartHeight}px` }}
      />
      <p class="summary" id={`summary-${spec.id}`}>
        <span class="sr-only">{spec.note} </span>
        {text}
      </p>
      <p class="sr-only" aria-live="polite">
        {spoken}
      </p>
      {asTable && <ChartTable spec={spec} series={series} history={history} range={range} />}
    </section>
  );
}

/** Returns the values at the cursor as a sentence, for screen readers. */
function valuesAt(
  spec: ChartSpec,
  series: SeriesSpec[],
  history: History,
  index: number | null,
): string {
  if (index === null) return '';
  const values = series.map(({ label, values }) => `${label} ${spec.format(values[index])}`);
  return `${runTime(history.elapsed_s[index], 1)}: ${values.join(', ')}`;
}

/** Updates a plot on changes of data, range, width and theme. */
function usePlot(props: Props, series: SeriesSpec[], onCursor: (index: number | null) => void) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = useThemeVersion();
  // The plot reads the latest values while drawing, long after its creation.
  const latest = useRef({ props, series });
  latest.current = { props, series };
  const look = series.map(({ id }) => id).join(' ');

  // Depend on the series' IDs, because the series are new objects for each version.
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const now = (): Props => latest.current.props;
    const { spec } = now();
    const options = plotOptions(spec, latest.current.series, element.clientWidth, {
      onZoom: (from, to) => now().onState((before) => zoomTo(before, from, to)),
      onReset: () => now().onReset(),
      onCursor,
      markers: () => now().markers,
      range: () => visible(now().state, now().history.last_s),
    });
    const made = new uPlot(
      withFirstFill(options, latest.current.series),
      dataOf(now().history, latest.current.series),
      element,
    );
    plot.current = made;
    now().onCanvas(spec.id, made.ctx.canvas);
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0)
        made.setSize({ width: element.clientWidth, height: chartHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      now().onCanvas(spec.id, null);
      made.destroy();
      plot.current = null;
    };
  }, [look, theme]);

  const [from, to] = visible(props.state, props.history.last_s);
  const markers = props.markers.join(' ');
  // Depend on the version, because the history object stays the same.
  useEffect(() => {
    plot.current?.setData(dataOf(props.history, series), true);
  }, [props.version, from, to, look, markers]);
  return { holder, plot };
}

function dataOf(history: History, series: SeriesSpec[]): uPlot.AlignedData {
  return [history.elapsed_s, ...series.map(({ values }) => values)] as uPlot.AlignedData;
}

interface LegendProps {
  spec: ChartSpec;
  series: SeriesSpec[];
  history: History;
  index: number | null;
  range: [number, number];
}

/** The lines with their values at the cursor, or their newest displayed values. */
function Legend({ spec, series, history, index, range }: LegendProps) {
  const newest = Math.min(history.length, history.indexAt(range[1] + 1e-6)) - 1;
  const at = index ?? newest;
  return (
    <ul class="legend">
      {series.map((each) => (
        <li key={each.id}>
          <svg width="22" height="8" aria-hidden="true">
            <line
              x1="0"
              x2="22"
              y1="4"
              y2="4"
              style={{ stroke: `var(${each.color})` }}
              stroke-width={each.width + 0.5}
              stroke-dasharray={each.dash.join(' ')}
            />
          </svg>
          {each.label} <span class="num">{spec.format(each.values[at])}</span>
        </li>
      ))}
      {index !== null && <li class="num at">at {runTime(history.elapsed_s[index], 1)}</li>}
    </ul>
  );
}
