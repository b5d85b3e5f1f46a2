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

describe('window of a long table', () => {
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

  test('reaches the last row despite the maximum element height of browsers', () => {
    for (const rows of [100, 20_000, 2_000_000]) {
      const { height } = windowAt(0, viewport, rows);
      expect(height).toBeLessThanOrEqual(12_000_000);
      const window = windowAt(height - viewport, viewport, rows);
      expect(window.offset + window.limit).toBe(rows);
    }
  });

  test('requests whole pages', () => {
    const window = windowAt(1000 * rowHeight, viewport, 20_000);
    const asked = pageOf(window);
    expect(asked.offset % 25).toBe(0);
    expect(asked.limit % 25).toBe(0);
    expect(asked.offset).toBeLessThanOrEqual(window.offset);
    expect(asked.offset + asked.limit).toBeGreaterThanOrEqual(window.offset + window.limit);
    expect(asked.limit).toBeLessThanOrEqual(100);
  });

  test('scrolls to a row only if it is not visible', () => {
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

  test('moves by keys, within the rows', () => {
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

describe('table requests', () => {
  test('a word matches anywhere, a pattern is used unchanged', () => {
    expect(searchPattern(' adsl ')).toBe('*adsl*');
    expect(searchPattern('adsl?.up')).toBe('adsl?.up');
    expect(searchPattern('  ')).toBe('');
  });

  test('the path contains search, order and range', () => {
    const path = tablePath({ search: 'a b', sort: 'drops', order: 'desc' }, 50, 25);
    expect(path).toBe('/v1/table?sort=drops&order=desc&match=*a+b*&offset=50&limit=25');
    expect(offsetOf(path)).toBe(50);
  });

  test('numbers sort descending, names ascending; a second click reverses the order', () => {
    const start = { search: '', sort: 'name', order: 'asc' } as const;
    const drops = sortedBy(start, 'drops');
    expect(drops).toMatchObject({ sort: 'drops', order: 'desc' });
    expect(sortedBy(drops, 'drops').order).toBe('asc');
    expect(sortedBy(drops, 'name').order).toBe('asc');
  });
});

describe('row cache', () => {
  test('keeps a bounded number of rows, the newest', () => {
    const cache = new RowCache();
    for (let offset = 0; offset < 100_000; offset += 50)
      cache.put(offset, page(offset, 50, 100_000));
    expect(cache.size).toBeLessThanOrEqual(2000);
    expect(cache.at(99_999)?.name).toBe('l99999');
    expect(cache.at(0)).toBeNull();
  });

  test('drops rows beyond the end of a shortened table', () => {
    const cache = new RowCache();
    cache.put(0, page(0, 50, 50));
    cache.put(0, page(0, 10, 10));
    expect(cache.at(9)?.name).toBe('l9');
    expect(cache.at(10)).toBeNull();
    expect(cache.size).toBe(10);
  });
});

describe('sparkline', () => {
  test('ends on the right, scales from 0, and omits gaps', () => {
    expect(sparkPath([])).toBe('');
    expect(sparkPath([0, 10], 2)).toBe('M0.0 17.0L96.0 1.0');
    expect(sparkPath([5, null, 10], 3)).toBe('M0.0 9.0M96.0 1.0');
    expect(sparkPath([4], 60)).toMatch(/^M96\.0 /);
  });
});
