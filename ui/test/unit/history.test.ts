import { describe, expect, test } from 'vitest';
import type { HistoryColumns } from '../../src/api/types';
import { History, keptSamples, valueColumns } from '../../src/data/history';
import { columns } from './samples';

function lengths(history: History): number[] {
  return [
    history.elapsed_s.length,
    ...valueColumns.map((name) => history.values[name].length),
    ...Object.values(history.drops).map((column) => column.length),
  ];
}

describe('history of a direction', () => {
  test('stays bounded regardless of the length of the run', () => {
    const history = new History();
    let most = 0;
    // Three days at 10 Hz, in events of 5 samples like those of the stream, would be 2.6 million;
    // a tenth of these samples wraps the buffer 43 times.
    for (let at = 0; at < 260_000; at += 5) {
      history.append(columns(at, 5, { loss: 1 }));
      most = Math.max(most, ...lengths(history));
    }
    expect(most).toBeLessThanOrEqual(keptSamples + 600 + 5);
    expect(history.length).toBeGreaterThanOrEqual(keptSamples);
    expect(history.last_s).toBeCloseTo(25_999.9);
    expect(history.first_s).toBeGreaterThan(25_300);
    expect(new Set(lengths(history)).size).toBe(1);
  });

  test('appends only newer samples', () => {
    const history = new History();
    history.append(columns(0, 10));
    history.append(columns(5, 10));
    history.append(columns(0, 15));
    expect(history.elapsed_s).toEqual(columns(0, 15).elapsed_s);
  });

  test('fills a drop reason with zeros before its first and after its last sample', () => {
    const history = new History();
    history.append(columns(0, 2, { loss: 7 }));
    history.append(columns(2, 2, { queue_full: 3 }));
    expect(history.drops).toEqual({ loss: [7, 7, 0, 0], queue_full: [0, 0, 3, 3] });
  });

  test('removes a reason without drops in the window', () => {
    const history = new History(100);
    history.append(columns(0, 10, { outage: 5 }));
    for (let at = 10; at < 2000; at += 10) history.append(columns(at, 10));
    expect(Object.keys(history.drops)).toEqual([]);
  });

  test('replaces all samples, including by those of a restarted run', () => {
    const history = new History();
    history.append(columns(1000, 50, { loss: 1 }));
    const { version } = history;
    history.replace(columns(0, 3));
    expect(history.elapsed_s).toEqual([0, 0.1, 0.2]);
    expect(history.drops).toEqual({});
    expect(history.version).toBeGreaterThan(version);
  });

  test('fills missing columns with gaps', () => {
    const { marks_per_s: _, ...rest } = columns(0, 3);
    const history = new History();
    history.append(rest as HistoryColumns);
    expect(history.values.marks_per_s).toEqual([null, null, null]);
  });

  test('finds the first sample at or after a time', () => {
    const history = new History();
    history.append(columns(10, 10));
    expect(history.indexAt(0)).toBe(0);
    expect(history.indexAt(1.5)).toBe(5);
    expect(history.indexAt(1.55)).toBe(6);
    expect(history.indexAt(99)).toBe(10);
  });

  test('returns copies', () => {
    const history = new History();
    history.append(columns(0, 3, { loss: 1 }));
    const copy = history.columns();
    copy.elapsed_s.push(99);
    copy.drops_per_s['loss']?.push(99);
    expect(history.length).toBe(3);
    expect(history.drops['loss']).toEqual([1, 1, 1]);
  });
});
