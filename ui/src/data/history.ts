import type { Column, HistoryColumns } from '../api/types';

/** Names of the columns other than `elapsed_s` and the drops. */
export const valueColumns = [
  'bits_in_per_s',
  'bits_out_per_s',
  'rate_bits_per_s',
  'queued_frames',
  'delay_p50_us',
  'delay_p99_us',
  'queueing_p50_us',
  'queueing_p99_us',
  'marks_per_s',
  'late',
] as const;

export type ValueColumn = (typeof valueColumns)[number];

/** Samples of 10 minutes at 10 Hz; the run keeps the same number. */
export const keptSamples = 6000;
/** Samples are removed in blocks, because each removal moves the whole array. */
const slack = 600;

/**
 * The samples of one direction, bounded by `limit`.
 *
 * Arrays are untyped, because the charts and the API represent a gap as `null`.
 */
export class History {
  readonly elapsed_s: number[] = [];
  readonly values: Record<ValueColumn, Column>;
  readonly drops: Record<string, Column> = {};
  /** Incremented by each change of the contents. */
  version = 0;

  constructor(private readonly limit: number = keptSamples) {
    this.values = Object.fromEntries(valueColumns.map((name) => [name, []])) as unknown as Record<
      ValueColumn,
      Column
    >;
  }

  get length(): number {
    return this.elapsed_s.length;
  }

  get last_s(): number {
    return this.elapsed_s[this.elapsed_s.length - 1] ?? 0;
  }

  get first_s(): number {
    return this.elapsed_s[0] ?? 0;
  }

  /** Replaces all samples, for the first event of a stream. */
  replace(columns: HistoryColumns): void {
    this.elapsed_s.length = 0;
    for (const name of valueColumns) this.values[name].length = 0;
    for (const reason of Object.keys(this.drops)) delete this.drops[reason];
    this.append(columns);
  }

  /** Appends samples newer than the last one. */
  append(columns: HistoryColumns): void {
    const from = this.firstNew(columns.elapsed_s);
    const before = this.length;
    const added = columns.elapsed_s.length - from;
    this.version += 1;
    if (added <= 0) return;
    pushAll(this.elapsed_s, columns.elapsed_s, from);
    for (const name of valueColumns) {
      // A missing column is filled with gaps.
      pushAll(this.values[name], columns[name] ?? gaps(from + added), from);
    }
    for (const reason of Object.keys(columns.drops_per_s ?? {})) {
      this.drops[reason] ??= new Array<number>(before).fill(0);
    }
    for (const [reason, column] of Object.entries(this.drops)) {
      pushAll(column, columns.drops_per_s?.[reason] ?? zeros(from + added), from);
    }
    this.trim();
  }

  /** Returns all samples as columns, for a copy of this history. */
  columns(): HistoryColumns {
    const drops = Object.entries(this.drops).map(([reason, column]) => [reason, column.slice()]);
    return {
      elapsed_s: this.elapsed_s.slice(),
      ...(Object.fromEntries(
        valueColumns.map((name) => [name, this.values[name].slice()]),
      ) as unknown as Record<ValueColumn, Column>),
      drops_per_s: Object.fromEntries(drops),
    };
  }

  /** Returns the index of the first sample at or after a time. */
  indexAt(time_s: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.elapsed_s[middle] ?? 0) < time_s) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private firstNew(elapsed_s: number[]): number {
    if (this.length === 0) return 0;
    const last = this.last_s;
    let from = elapsed_s.length;
    while (from > 0 && (elapsed_s[from - 1] ?? 0) > last) from -= 1;
    return from;
  }

  private trim(): void {
    if (this.length <= this.limit + slack) return;
    const surplus = this.length - this.limit;
    this.elapsed_s.splice(0, surplus);
    for (const name of valueColumns) this.values[name].splice(0, surplus);
    for (const [reason, column] of Object.entries(this.drops)) {
      column.splice(0, surplus);
      // A reason without drops in the window needs no column.
      if (column.every((value) => value === 0)) delete this.drops[reason];
    }
  }
}

function pushAll(to: Column, values: Column, from: number): void {
  for (let at = from; at < values.length; at += 1) to.push(values[at] ?? null);
}

function gaps(length: number): Column {
  return new Array<null>(length).fill(null);
}

function zeros(length: number): Column {
  return new Array<number>(length).fill(0);
}
