import type { Column } from '../api/types';
import type { History } from '../data/history';
import { bitRate, micros, perSecond, reasonName, shortCount } from '../format';

/** A line of a chart. */
export interface SeriesSpec {
  id: string;
  label: string;
  /** CSS custom property of the colour. */
  color: string;
  /** Dash lengths, so that lines differ not only by colour. */
  dash: number[];
  width: number;
  stepped: boolean;
  values: Column;
  /** CSS custom property of the fill down to the previous series, or to 0. */
  fill: string | null;
  /** Whether the scale includes the series; otherwise it is cut off above the scale. */
  scales: boolean;
}

/** A chart: its series for a history, and the format of its values. */
export interface ChartSpec {
  id: string;
  title: string;
  /** Explanation for first-time users. */
  note: string;
  format: (value: number | null | undefined) => string;
  /** Minimum end of the scale, so that noise does not look large. */
  least: number;
  series: (history: History) => SeriesSpec[];
}

function line(
  id: string,
  label: string,
  color: string,
  values: Column,
  more: Partial<SeriesSpec> = {},
): SeriesSpec {
  return {
    id,
    label,
    color,
    values,
    dash: [],
    width: 1.5,
    stepped: false,
    fill: null,
    scales: true,
    ...more,
  };
}

const throughput: ChartSpec = {
  id: 'throughput',
  title: 'Throughput',
  note: 'Offered: frames that arrive at the link. Delivered: frames that leave it.',
  format: bitRate,
  least: 1000,
  series: ({ values }) => [
    line('offered', 'offered', '--c-orange', values.bits_in_per_s, { dash: [5, 3] }),
    line('delivered', 'delivered', '--c-blue', values.bits_out_per_s, { width: 2 }),
    line('rate', 'effective rate', '--c-ink', values.rate_bits_per_s, {
      dash: [1, 3],
      stepped: true,
      width: 2,
      // On a lightly loaded link, the traffic would be a line at the bottom.
      scales: false,
    }),
  ],
};

const queue: ChartSpec = {
  id: 'queue',
  title: 'Queue',
  note: 'Frames in the queue and in service at the end of each 100 ms.',
  format: shortCount,
  least: 4,
  series: ({ values }) => [
    line('queued', 'frames queued', '--c-purple', values.queued_frames, { fill: '--f-purple' }),
  ],
};

const delay: ChartSpec = {
  id: 'delay',
  title: 'One-way delay',
  note: 'From arrival to release. Lower area: propagation. Upper area: median queueing. Band: up to the 99th percentile.',
  format: micros,
  least: 100,
  series: ({ values }) => [
    line('propagation', 'propagation', '--c-green', propagation(values), {
      fill: '--f-green',
      width: 1,
    }),
    line('median', 'median', '--c-blue', values.delay_p50_us, { fill: '--f-blue', width: 2 }),
    line('p99', 'p99', '--c-orange', values.delay_p99_us, {
      fill: '--f-orange',
      dash: [4, 3],
    }),
  ],
};

const losses: ChartSpec = {
  id: 'losses',
  title: 'Losses and marks',
  note: 'Frames/s dropped by the models, by reason, and frames/s marked with ECN.',
  format: perSecond,
  least: 1,
  series: ({ values, drops, elapsed_s }) => [
    ...Object.keys(drops)
      .sort()
      .map((reason) => lossLine(reason, drops[reason] ?? elapsed_s.map(() => 0))),
    line('marks', 'ECN marks', '--c-green', values.marks_per_s, { dash: [1, 3], width: 2 }),
  ],
};

const lateness: ChartSpec = {
  id: 'lateness',
  title: 'Late frames',
  note: 'Frames handed over later than the tolerance, per 100 ms. The machine causes lateness, not the link.',
  format: shortCount,
  least: 4,
  series: ({ values }) => [
    line('late', 'late frames per 100 ms', '--c-red', values.late, {
      fill: '--f-red',
      stepped: true,
    }),
  ],
};

export const chartSpecs: ChartSpec[] = [throughput, queue, delay, losses, lateness];

/** Each drop reason has the same line style in all charts. */
const lossLooks: Record<string, [string, number[]]> = {
  queue_full: ['--c-red', []],
  loss: ['--c-orange', [6, 2]],
  aqm: ['--c-purple', [3, 2]],
  outage: ['--c-ink', [8, 3]],
  entry_loss: ['--c-yellow', [6, 2, 2, 2]],
  bit_error: ['--c-sky', [2, 2]],
  mtu: ['--c-blue', [8, 2, 2, 2]],
};

/** Returns the upper end of the scale for the samples of a range. */
export function scaleEnd(spec: ChartSpec, series: SeriesSpec[], from: number, to: number): number {
  let most = spec.least;
  for (const { values, scales } of series) {
    if (!scales) continue;
    for (let at = from; at < to; at += 1) most = Math.max(most, values[at] ?? 0);
  }
  return most * 1.08;
}

function lossLine(reason: string, values: Column): SeriesSpec {
  const [color, dash] = lossLooks[reason] ?? ['--c-yellow', [4, 4]];
  return line(reason, reasonName(reason), color, values, { dash });
}

/** Returns the median delay without queueing. */
export function propagation(values: History['values']): Column {
  return values.delay_p50_us.map((all, at) => {
    const queued = values.queueing_p50_us[at];
    return typeof all === 'number' && typeof queued === 'number' ? Math.max(0, all - queued) : null;
  });
}
