import uPlot from 'uplot';
import { runTime } from '../format';
import { cssColor } from '../theme';
import type { ChartSpec, SeriesSpec } from './spec';

export interface PlotEvents {
  onZoom: (from_s: number, to_s: number) => void;
  onReset: () => void;
  onCursor: (index: number | null) => void;
  /** Times of changes, drawn as vertical lines. */
  markers: () => number[];
  /** The range of the scale. */
  range: () => [number, number];
}

/** Tick distances on the time axis, round in minutes or seconds. */
const steps_s = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300];

export const chartHeight = 168;
const font = '12px system-ui, sans-serif';

/** Returns the uPlot options of a chart, with the colours of the current theme. */
export function plotOptions(
  spec: ChartSpec,
  series: SeriesSpec[],
  width: number,
  events: PlotEvents,
): uPlot.Options {
  const ink = cssColor('--ink-2');
  const rule = cssColor('--rule');
  const axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { show: false } };
  return {
    width,
    height: chartHeight,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    cursor: {
      // All charts of the view share the cursor and the zoom.
      sync: { key: 'link', setSeries: false, scales: ['x', null] },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      bind: {
        dblclick: () => () => {
          events.onReset();
          return null;
        },
      },
      points: { size: 6 },
    },
    scales: {
      x: { time: false, range: () => events.range() },
      y: { range: (_plot, _min, max) => [0, Math.max(spec.least, (max ?? 0) * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        gap: 6,
        space: 70,
        incrs: steps_s,
        values: (_plot, splits) => timeLabels(splits),
      },
      {
        ...axis,
        size: 84,
        gap: 6,
        space: 34,
        values: (_plot, splits) => splits.map((value) => spec.format(value)),
      },
    ],
    series: [{}, ...series.map(seriesOptions)],
    bands: bandsOf(series),
    hooks: {
      setCursor: [(plot) => events.onCursor(plot.cursor.idx ?? null)],
      setSelect: [(plot) => select(plot, events)],
      draw: [(plot) => drawMarkers(plot, events.markers())],
    },
  };
}

function seriesOptions(series: SeriesSpec): uPlot.Series {
  const options: uPlot.Series = {
    label: series.label,
    stroke: cssColor(series.color),
    width: series.width,
    dash: series.dash,
    points: { show: false },
    spanGaps: false,
    auto: series.scales,
  };
  const stepped = uPlot.paths.stepped;
  if (series.stepped && stepped) options.paths = stepped({ align: 1 });
  return options;
}

/** Returns the bands between each filled series and the previous one; the first fills to 0. */
function bandsOf(series: SeriesSpec[]): uPlot.Band[] {
  return series.flatMap((each, at) => {
    if (!each.fill || at === 0) return [];
    return [{ series: [at + 1, at] as [number, number], fill: cssColor(each.fill) }];
  });
}

function timeLabels(splits: number[]): string[] {
  const step = (splits[1] ?? 1) - (splits[0] ?? 0);
  return splits.map((value) => runTime(value, step < 1 ? 1 : 0));
}

function select(plot: uPlot, events: PlotEvents): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const from = plot.posToVal(left, 'x');
  const to = plot.posToVal(left + width, 'x');
  // Only the chart under the pointer has a selection; the other charts follow it.
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  events.onZoom(from, to);
}

function drawMarkers(plot: uPlot, times: number[]): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales['x'] ?? {};
  if (min == null || max == null) return;
  ctx.save();
  ctx.strokeStyle = cssColor('--marker');
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const time of times) {
    if (time < min || time > max) continue;
    const x = Math.round(plot.valToPos(time, 'x', true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Makes the first series fill to 0. */
export function withFirstFill(options: uPlot.Options, series: SeriesSpec[]): uPlot.Options {
  const first = series[0];
  const target = options.series[1];
  if (first?.fill && target) target.fill = cssColor(first.fill);
  return options;
}
