import { describe, expect, test } from 'vitest';
import { csvOf } from '../../src/charts/csv';
import { pan, startRange, togglePause, visible, zoomBy, zoomTo } from '../../src/charts/range';
import { chartSpecs, propagation, scaleEnd } from '../../src/charts/spec';
import { figures, indices, summary, tableOf } from '../../src/charts/summary';
import { svgOf, ticks } from '../../src/charts/svg';
import { History } from '../../src/data/history';
import { barHeight } from '../../src/views/fidelity/histogram';
import { columns } from './samples';

function history(count = 600): History {
  const made = new History();
  made.append(columns(0, count, { queue_full: 2, loss: 1 }));
  return made;
}

describe('time range', () => {
  test('follows the run from its start', () => {
    expect(visible(startRange, 0)).toEqual([0, 10]);
    expect(visible(startRange, 5)).toEqual([0, 10]);
    expect(visible(startRange, 100)).toEqual([40, 100]);
  });

  test('is fixed while paused or zoomed', () => {
    const paused = togglePause(startRange, 100);
    expect(visible(paused, 130)).toEqual([40, 100]);
    expect(visible(togglePause(paused, 130), 130)).toEqual([70, 130]);
    const zoomed = zoomTo(startRange, 50, 45);
    expect(visible(zoomed, 200)).toEqual([45, 50]);
  });

  test('zooming has a minimum length and stops at the start', () => {
    expect(zoomTo(startRange, 50, 50.01)).toEqual(startRange);
    expect(visible(zoomTo(startRange, -5, 5), 100)).toEqual([0, 5]);
    let state = startRange;
    for (let times = 0; times < 40; times += 1) state = zoomBy(state, 100, 60, 0.5);
    const [from, to] = visible(state, 100);
    expect(to - from).toBeCloseTo(0.5);
    expect(from).toBeLessThanOrEqual(60);
    expect(to).toBeGreaterThanOrEqual(60);
  });

  test('panning stops at the ends of the data', () => {
    const zoomed = zoomTo(startRange, 50, 60);
    expect(visible(pan(zoomed, 100, 0.5), 100)).toEqual([55, 65]);
    expect(visible(pan(zoomed, 100, -99), 100)).toEqual([0, 10]);
    expect(visible(pan(zoomed, 100, 99), 100)).toEqual([95, 105]);
  });
});

describe('chart summaries', () => {
  test('figures omit gaps', () => {
    expect(figures([1, null, 3, 8], 0, 3)).toEqual({ last: 3, mean: 2, most: 3 });
    expect(figures([null], 0, 1)).toEqual({ last: null, mean: null, most: null });
  });

  test('the samples of a range include both ends', () => {
    expect(indices(history(), [1, 2])).toEqual([10, 21]);
  });

  test('every chart has lines, a summary and a table', () => {
    const data = history();
    for (const spec of chartSpecs) {
      const series = spec.series(data);
      expect(series.length).toBeGreaterThan(0);
      for (const { values } of series) expect(values.length).toBe(data.length);
      expect(summary(spec, data, [10, 20])).toMatch(/^0:10 to 0:20\. .+ on average, .+ at most\.$/);
      const { rows, head } = tableOf(series, data, [10, 20]);
      expect(head.length).toBe(series.length + 1);
      for (const row of rows) expect(row.length).toBe(head.length);
    }
    expect(summary(chartSpecs[0] as (typeof chartSpecs)[0], data, [900, 910])).toMatch(
      /No samples/,
    );
  });

  test('the effective rate does not extend the throughput scale', () => {
    const data = history();
    data.values.rate_bits_per_s = data.values.rate_bits_per_s.map(() => 150e6);
    const spec = chartSpecs[0] as (typeof chartSpecs)[0];
    const most = Math.max(...data.values.bits_in_per_s.slice(0, 20).map(Number));
    expect(scaleEnd(spec, spec.series(data), 0, 20)).toBeCloseTo(Math.max(spec.least, most) * 1.08);
    // Lines above the scale are cut off and not drawn over the previous chart.
    expect(svgOf('link.up', data, [0, 2], () => '#000')).not.toMatch(/NaN|[ML ,]-\d/);
  });

  test('lines of a chart differ by dashes or widths, not only by colour', () => {
    for (const spec of chartSpecs) {
      const looks = spec.series(history()).map(({ dash, width }) => `${dash.join(' ')} ${width}`);
      expect(new Set(looks).size, spec.id).toBe(looks.length);
    }
  });

  test('tables have at most 60 rows of means over equal intervals, newest first', () => {
    const data = history(6000);
    const series = chartSpecs[0]?.series(data) ?? [];
    for (const width of [5, 10, 60, 600]) {
      const { rows, step_s } = tableOf(series, data, [0, width]);
      expect(rows.length).toBeLessThanOrEqual(61);
      expect(rows.length * step_s).toBeGreaterThanOrEqual(width * 0.95);
      expect(rows[0]?.[0]).toBeGreaterThan(rows[1]?.[0] ?? 0);
    }
    const { rows } = tableOf(series, data, [0, 60]);
    // Ten samples with the value 10 × time, from 59.0 to 59.9.
    expect(rows.find(([time]) => time === 59)?.[1]).toBeCloseTo(594.5);
  });

  test('propagation is the delay without queueing', () => {
    const values = {
      ...history(3).values,
      delay_p50_us: [30, null, 10],
      queueing_p50_us: [10, 5, 12],
    };
    expect(propagation(values)).toEqual([20, null, 0]);
  });
});

describe('exported files', () => {
  test('CSV has a line per sample and a column per drop reason', () => {
    const lines = csvOf('a,"b".up', history(), [0, 1]).split('\r\n');
    expect(lines[0]).toMatch(
      /^direction,elapsed_s,bits_in_per_s,.*,late,drops_loss_per_s,drops_queue_full_per_s$/,
    );
    expect(lines.length).toBe(1 + 11 + 1);
    expect(lines[3]).toMatch(/^"a,""b"".up",0\.200,2,2,.*,1,2$/);
  });

  test('CSV fields of gaps are empty', () => {
    const data = new History();
    data.append({ ...columns(0, 1), delay_p50_us: [null] });
    expect(csvOf('a.up', data, [0, 1]).split('\r\n')[1]).toMatch(/^a\.up,0\.000,0,0,0,0,,0,/);
  });

  test('SVG has a path per line, and escapes text', () => {
    const data = history();
    const text = svgOf('<a> & "b"', data, [10, 40], (name) =>
      name === '--paper' ? '#fff' : '#123',
    );
    const lines = chartSpecs.reduce((sum, spec) => sum + spec.series(data).length, 0);
    expect(text.match(/<path d="M[^"]+" fill="none"/g)?.length).toBe(lines);
    expect(text).toContain('<title>&lt;a> &amp; &quot;b&quot;</title>');
    expect(text).not.toContain('NaN');
  });

  test('ticks are round numbers within the range', () => {
    expect(ticks(0, 100, 4)).toEqual([0, 50, 100]);
    expect(ticks(3, 14, 5)).toEqual([5, 10]);
    expect(ticks(5, 5, 4)).toEqual([]);
  });
});

test('histogram bars: one frame among a million is visible', () => {
  expect(barHeight(1, 1e6, 150)).toBeGreaterThan(5);
  expect(barHeight(0, 1e6, 150)).toBe(0);
  expect(barHeight(1e6, 1e6, 150)).toBeCloseTo(150);
});
