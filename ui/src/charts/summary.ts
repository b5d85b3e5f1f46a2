import type { Column } from '../api/types';
import type { History } from '../data/history';
import { runTime } from '../format';
import type { ChartSpec, SeriesSpec } from './spec';

export interface Figures {
  last: number | null;
  mean: number | null;
  most: number | null;
}

/** Returns the newest, mean and maximum value of part of a column, without gaps. */
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

/** Returns the indices of the samples in a time range. */
export function indices(history: History, range: [number, number]): [number, number] {
  return [history.indexAt(range[0]), history.indexAt(range[1] + 1e-6)];
}

/** Describes a chart with one sentence per line, for screen readers and as an overview. */
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

/** Returns at most 60 rows of a chart's table: means over equal intervals, newest first. */
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

/** Returns the interval of a time. Binary sums of tenths are slightly too small. */
function slotOf(time_s: number | undefined, step_s: number): number {
  return Math.floor((time_s ?? 0) / step_s + 1e-6);
}
