import type { Column } from '../api/types';
import type { History } from '../data/history';
import { runTime } from '../format';
import type { ChartSpec, SeriesSpec } from './spec';

export interface Figures {
  last: number | null;
  mean: number | null;
  most: number | null;
}

/** The newest value, the mean and the largest of a part of a column; gaps are left out. */
export function figures(column: Column, from: number, to: number): Figures {
  let sum = 0;
  let count = 0;
  let most: number | null = null;
  let last: number | null = null;
  for (let at = from; at < to; at += 1) {
    const value = column[at];
    if (typeof value !== 'number') continue;
    sum += value;
    count += 1;
    last = value;
    if (most === null || value > most) most = value;
  }
  return { last, mean: count > 0 ? sum / count : null, most };
}

/** Indices of the samples of a range of times. */
export function indices(history: History, range: [number, number]): [number, number] {
  return [history.indexAt(range[0]), history.indexAt(range[1] + 1e-6)];
}

/** A chart in one sentence per line: for those who do not see it, and for a quick look. */
export function summary(spec: ChartSpec, history: History, range: [number, number]): string {
  const [from, to] = indices(history, range);
  if (to <= from) return 'No samples in this range.';
  const parts = spec.series(history).map((series) => {
    const { mean, most } = figures(series.values, from, to);
    if (mean === null) return `${series.label}: no values`;
    return `${series.label}: ${spec.format(mean)} on average, ${spec.format(most)} at most`;
  });
  return `${runTime(range[0])} to ${runTime(range[1])}. ${parts.join('; ')}.`;
}

export interface TableData {
  head: string[];
  rows: (number | null)[][];
}

const mostTableRows = 60;
const steps_s = [0.1, 0.5, 1, 2, 5, 10, 30];

/** The rows of a chart's table: means over equal times, at most 60 of them, the newest first. */
export function tableOf(
  series: SeriesSpec[],
  history: History,
  range: [number, number],
): TableData & { step_s: number } {
  const [from, to] = indices(history, range);
  const width = range[1] - range[0];
  const step_s = steps_s.find((step) => width / step <= mostTableRows) ?? 60;
  const rows: (number | null)[][] = [];
  let start = from;
  while (start < to) {
    const slot = slotOf(history.elapsed_s[start], step_s);
    let end = start;
    while (end < to && slotOf(history.elapsed_s[end], step_s) === slot) end += 1;
    rows.push([slot * step_s, ...series.map(({ values }) => figures(values, start, end).mean)]);
    start = end;
  }
  return { head: ['time', ...series.map(({ label }) => label)], rows: rows.reverse(), step_s };
}

/** The number of a time's step. Times are sums of tenths, which binary holds a little too small. */
function slotOf(time_s: number | undefined, step_s: number): number {
  return Math.floor((time_s ?? 0) / step_s + 1e-6);
}
