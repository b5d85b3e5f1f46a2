import { describe, expect, test } from 'vitest';
import { searchPattern } from '../../src/api/client';
import type { TablePage, TableRow } from '../../src/api/types';
import { offsetOf, sortedBy, tablePath } from '../../src/views/overview/query';
import { RowCache } from '../../src/views/overview/rows';
import { sparkPath } from '../../src/views/overview/sparkline';
import { moveBy, pageOf, rowHeight, scrollToRow, windowAt } from '../../src/views/overview/window';

function row(name: string): TableRow {
  return {
    name,
    state: 'on',
    bits_in_per_s: 0,
    bits_out_per_s: 0,
    packets_in_per_s: 0,
    packets_out_per_s: 0,
    drops_per_s: 0,
    queued: 0,
    late: 0,
    overload: 0,
    recent: [],
  };
}

function page(offset: number, count: number, fitting: number): TablePage {
  const rows = Array.from({ length: count }, (_, at) => row(`l${offset + at}`));
  return { elapsed_s: 1, directions: fitting, fitting, rows };
}

describe('the window of a long table', () => {
  const viewport = 600;

  test.each([0, 1, 5, 24, 1000, 20_000, 2_000_000])(
    'of %i rows covers the screen everywhere',
    (rows) => {
      const { height } = windowAt(0, viewport, rows);
      for (let step = 0; step <= 100; step += 1) {
        const scrollTop = ((height - viewport) * step) / 100;
        const window = windowAt(scrollTop, viewport, rows);
        expect(window.offset).toBeGreaterThanOrEqual(0);
        expect(window.offset + window.limit).toBeLessThanOrEqual(rows);
        expect(window.limit).toBeLessThanOrEqual(60);
        if (rows * rowHeight < viewport) {
          expect(window.limit).toBe(rows);
          continue;
        }
        const top = Math.max(0, scrollTop);
        expect(window.top).toBeLessThanOrEqual(top + 1e-6);
        expect(window.top + window.limit * rowHeight).toBeGreaterThanOrEqual(top + viewport - 1e-6);
      }
    },
  );

  test('reaches the last row, also where a browser cannot be that high', () => {
    for (const rows of [100, 20_000, 2_000_000]) {
      const { height } = windowAt(0, viewport, rows);
      expect(height).toBeLessThanOrEqual(12_000_000);
      const window = windowAt(height - viewport, viewport, rows);
      expect(window.offset + window.limit).toBe(rows);
    }
  });

  test('asks for whole pages', () => {
    const window = windowAt(1000 * rowHeight, viewport, 20_000);
    const asked = pageOf(window);
    expect(asked.offset % 25).toBe(0);
    expect(asked.limit % 25).toBe(0);
    expect(asked.offset).toBeLessThanOrEqual(window.offset);
    expect(asked.offset + asked.limit).toBeGreaterThanOrEqual(window.offset + window.limit);
    expect(asked.limit).toBeLessThanOrEqual(100);
  });

  test('scrolls to a row only when it is not shown', () => {
    expect(scrollToRow(3, 0, viewport, 1000)).toBeNull();
    expect(scrollToRow(500, 0, viewport, 1000)).toBe(501 * rowHeight - viewport);
    expect(scrollToRow(2, 300, viewport, 1000)).toBe(60);
    for (const target of [0, 999_999, 1_234_567, 1_999_999]) {
      const scrollTop = scrollToRow(target, 6_000_000, viewport, 2_000_000) ?? 6_000_000;
      const window = windowAt(scrollTop, viewport, 2_000_000);
      expect(window.offset).toBeLessThanOrEqual(target);
      expect(window.offset + window.limit).toBeGreaterThan(target);
    }
  });

  test('moves by keys, and no further than the rows', () => {
    expect(moveBy('ArrowDown', 0, 10, 600)).toBe(1);
    expect(moveBy('ArrowDown', 9, 10, 600)).toBe(9);
    expect(moveBy('ArrowUp', 0, 10, 600)).toBe(0);
    expect(moveBy('PageDown', 0, 100, 600)).toBe(19);
    expect(moveBy('End', 0, 100, 600)).toBe(99);
    expect(moveBy('Home', 50, 100, 600)).toBe(0);
    expect(moveBy('x', 5, 100, 600)).toBeNull();
    expect(moveBy('ArrowDown', 0, 0, 600)).toBeNull();
  });
});

describe('what the table asks for', () => {
  test('a word is searched anywhere, a pattern is taken as it is', () => {
    expect(searchPattern(' adsl ')).toBe('*adsl*');
    expect(searchPattern('adsl?.up')).toBe('adsl?.up');
    expect(searchPattern('  ')).toBe('');
  });

  test('the path has search, order and part', () => {
    const path = tablePath({ search: 'a b', sort: 'drops', order: 'desc' }, 50, 25);
    expect(path).toBe('/v1/table?sort=drops&order=desc&match=*a+b*&offset=50&limit=25');
    expect(offsetOf(path)).toBe(50);
  });

  test('numbers begin at the largest, names at the first; again turns the order', () => {
    const start = { search: '', sort: 'name', order: 'asc' } as const;
    const drops = sortedBy(start, 'drops');
    expect(drops).toMatchObject({ sort: 'drops', order: 'desc' });
    expect(sortedBy(drops, 'drops').order).toBe('asc');
    expect(sortedBy(drops, 'name').order).toBe('asc');
  });
});

describe('rows that were shown', () => {
  test('are kept up to a bound, the newest of them', () => {
    const cache = new RowCache();
    for (let offset = 0; offset < 100_000; offset += 50)
      cache.put(offset, page(offset, 50, 100_000));
    expect(cache.size).toBeLessThanOrEqual(2000);
    expect(cache.at(99_999)?.name).toBe('l99999');
    expect(cache.at(0)).toBeNull();
  });

  test('go when the table becomes shorter', () => {
    const cache = new RowCache();
    cache.put(0, page(0, 50, 50));
    cache.put(0, page(0, 10, 10));
    expect(cache.at(9)?.name).toBe('l9');
    expect(cache.at(10)).toBeNull();
    expect(cache.size).toBe(10);
  });
});

describe('a sparkline', () => {
  test('ends on the right, has its scale from 0, and leaves gaps out', () => {
    expect(sparkPath([])).toBe('');
    expect(sparkPath([0, 10], 2)).toBe('M0.0 17.0L96.0 1.0');
    expect(sparkPath([5, null, 10], 3)).toBe('M0.0 9.0M96.0 1.0');
    expect(sparkPath([4], 60)).toMatch(/^M96\.0 /);
  });
});
