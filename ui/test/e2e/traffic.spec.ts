// The page agrees with the API, and both agree with iperf3.
import type { HistoryColumns, StatsEvent, TablePage } from '../../src/api/types';
import { valueColumns } from '../../src/data/history';
import { downloaded, expect, glance, open, openTable, parse, seconds, test } from './base';
import { type Run, startRun } from './run';

const rate = 8e6;
/** TCP payload in a 1514-byte frame with IPv6 and timestamps: 1428 bytes. */
const dataShare = 1428 / 1514;
let run: Run;

test.beforeAll(async () => {
  run = await startRun(
    [
      '--rate',
      '8mbit',
      '--delay',
      '15ms',
      '--loss',
      '0.5%',
      '--queue',
      '50p',
      '--time',
      '60s',
      '--peer',
      'iperf3 -s',
    ],
    ['iperf3', '-J', '-t', '18', '-c', 'far'],
  );
});

test.afterAll(() => run.stop());

test('the numbers of page, API and iperf3 agree', async ({ page }) => {
  await openTable(page, run.url);
  await seconds(5);

  // The header's values are between two responses of the API.
  const before = await run.ask<StatsEvent>('/v1/stats');
  await seconds(1.5);
  const shown = await glance(page);
  await seconds(0.2);
  const after = await run.ask<StatsEvent>('/v1/stats');
  const frames = parse(shown['Delivered']?.split('bit/s ')[1] ?? '');
  expect(frames).toBeGreaterThanOrEqual(before.totals.packets_out * 0.995);
  expect(frames).toBeLessThanOrEqual(after.totals.packets_out * 1.005);
  expect(await page.locator('.verdict').innerText()).not.toBe('');

  // A row of the table equals the API's, if its rates are for the same second.
  const cell = page.getByRole('row', { name: /link\.up/ }).locator('.cell-out');
  // The page polls once per second, so one of the two may be a second ahead.
  const apart = async (): Promise<number> => {
    const api = (await run.ask<TablePage>('/v1/table?match=link.up')).rows[0];
    return Math.abs(parse(await cell.innerText()) / (api?.bits_out_per_s ?? 0) - 1);
  };
  await expect.poll(apart).toBeLessThan(0.15);

  // Every exported sample equals the API's.
  await page.locator('.cell-name a', { hasText: 'link.up' }).click();
  await expect(page.getByRole('heading', { name: 'Throughput' })).toBeVisible();
  await seconds(1);
  await page.getByRole('button', { name: 'Pause charts' }).click();
  const csv = (
    await downloaded(page, () => page.getByRole('button', { name: 'CSV' }).click())
  ).toString();
  const [head = '', ...lines] = csv.trim().split('\r\n');
  const names = head.split(',');
  const history = await run.ask<HistoryColumns>('/v1/history/link.up');
  expect(lines.length).toBeGreaterThan(60);
  let compared = 0;
  for (const line of lines) {
    const fields = line.split(',');
    const at = history.elapsed_s.findIndex((time) => time.toFixed(3) === fields[1]);
    expect(at, `sample at ${fields[1]}`).toBeGreaterThanOrEqual(0);
    for (const name of valueColumns) {
      const value = history[name][at];
      expect(fields[names.indexOf(name)], `${name} at ${fields[1]}`).toBe(
        value === null ? '' : String(value),
      );
      compared += 1;
    }
  }
  expect(compared).toBe(lines.length * valueColumns.length);

  // The run continues until its program ends; iperf3 received the delivered bytes.
  await run.ended;
  const result = JSON.parse(run.stdout()) as { end: { sum_received: { bits_per_second: number } } };
  const received = result.end.sum_received.bits_per_second / dataShare;
  await expect(page.getByText('The run has ended')).toBeVisible();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('button', { name: 'Table of Throughput' }).click();
  const table = page.getByRole('group', { name: 'Table of Throughput' });
  const delivered = (await table.locator('tbody tr td:nth-child(3)').allInnerTexts()).map(parse);
  const busy = delivered.filter((value) => value > rate / 4);
  const mean = busy.reduce((sum, value) => sum + value, 0) / busy.length;
  expect(busy.length).toBeGreaterThanOrEqual(10);
  expect(mean / received).toBeGreaterThan(0.93);
  expect(mean / received).toBeLessThan(1.07);
});

test('exported images contain all charts', async ({ page }) => {
  // The previous test's page ended with its run, so this test needs another.
  const own = await startRun(['--rate', '8mbit', '--time', '30s'], ['ping', '-i', '0.05', 'far']);
  try {
    await open(page, own.url);
    await expect(page.getByRole('heading', { name: 'Late frames' })).toBeVisible();
    await seconds(2);
    // Dragging across one chart zooms all charts; a double click resets the zoom.
    const plots = await page.locator('.plot .u-over').all();
    const box = await plots[1]?.boundingBox();
    if (!box) throw new Error('no chart');
    await page.mouse.move(box.x + box.width * 0.2, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
    await page.mouse.up();
    await expect(page.getByRole('button', { name: 'Reset zoom' })).toBeEnabled();
    const stretches = await page
      .locator('.summary')
      .evaluateAll((all) =>
        all.map((each) => /\d+:\d+ to \d+:\d+/.exec(each.textContent ?? '')?.[0]),
      );
    expect(new Set(stretches).size).toBe(1);
    await page.mouse.dblclick(box.x + box.width * 0.4, box.y + 40);
    await expect(page.getByRole('button', { name: 'Reset zoom' })).toBeDisabled();

    const svg = (
      await downloaded(page, () => page.getByRole('button', { name: 'SVG' }).click())
    ).toString();
    for (const name of [
      'Throughput',
      'Queue',
      'One-way delay',
      'Losses and marks',
      'Late frames',
    ]) {
      expect(svg).toContain(`>${name}</text>`);
    }
    const png = await downloaded(page, () => page.getByRole('button', { name: 'PNG' }).click());
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    // Width and height in the image header: five charts of 168 pixels with titles.
    expect(png.readUInt32BE(16)).toBeGreaterThan(800);
    expect(png.readUInt32BE(20)).toBeGreaterThan(5 * 168);
  } finally {
    await own.stop();
  }
});
