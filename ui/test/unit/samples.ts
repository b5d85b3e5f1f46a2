import type { HistoryColumns } from '../../src/api/types';
import { valueColumns } from '../../src/data/history';

/** Returns `count` samples as sent by the run, 100 ms apart, starting with number `from`. */
export function columns(
  from: number,
  count: number,
  drops: Record<string, number> = {},
): HistoryColumns {
  const times = Array.from({ length: count }, (_, at) => Math.round((from + at) * 100) / 1000);
  const values = Object.fromEntries(
    valueColumns.map((name) => [name, times.map((time) => time * 10)]),
  );
  return {
    elapsed_s: times,
    ...(values as unknown as Omit<HistoryColumns, 'elapsed_s' | 'drops_per_s'>),
    drops_per_s: Object.fromEntries(
      Object.entries(drops).map(([key, value]) => [key, times.map(() => value)]),
    ),
  };
}
