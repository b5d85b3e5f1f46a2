import { type History, valueColumns } from '../data/history';
import { indices } from './summary';

/** Formats a field of a CSV file (RFC 4180). */
function field(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a range as CSV with all columns, one line per sample (100 ms). */
export function csvOf(direction: string, history: History, range: [number, number]): string {
  const [from, to] = indices(history, range);
  const reasons = Object.keys(history.drops).sort();
  const head = ['direction', 'elapsed_s', ...valueColumns];
  const lines = [[...head, ...reasons.map((reason) => `drops_${reason}_per_s`)].map(field)];
  for (let at = from; at < to; at += 1) {
    lines.push(
      [
        direction,
        // Times are binary sums of tenths; three digits are exact.
        history.elapsed_s[at]?.toFixed(3),
        ...valueColumns.map((name) => history.values[name][at]),
        ...reasons.map((reason) => history.drops[reason]?.[at]),
      ].map(field),
    );
  }
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}
