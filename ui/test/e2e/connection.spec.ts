// Lost connections, the end of the run, tabs, and the read token.
import type { HistoryColumns, StatsEvent } from '../../src/api/types';
import { downloaded, expect, glance, open, openTable, parse, seconds, test } from './base';
import { type Run, startRun } from './run';

let run: Run;

test.beforeEach(async () => {
  run = await startRun(['--rate', '10mbit', '--time', '60s'], ['ping', '-i', '0.02', 'far']);
});

test.afterEach(() => run.stop());

test('reports a lost connection, keeps the data, and recovers', async ({ page }) => {
  await open(page, run.cutUrl);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  await expect(page.locator('.chart')).toHaveCount(5);
  await seconds(2);
  await run.proxy.cut();
  const elapsed = async () => (await run.ask<StatsEvent>('/v1/stats')).elapsed_s;
  const lost = await elapsed();
  await expect(page.getByText('Connection lost')).toBeVisible();
  await expect(page.locator('.phase')).toContainText('no connection');
  await expect(page.locator('.chart')).toHaveCount(5);
  expect(parse((await glance(page))['Delivered']?.split('bit/s ')[1] ?? '')).toBeGreaterThan(50);
  await expect(page.getByText(/Try [2-9] in/)).toBeVisible();
  await seconds(3);
  const found = await elapsed();
  // Click long before the next automatic attempt, which would remove the button.
  await expect(page.getByText(/Try \d+ in ([5-9]|10) s/)).toBeVisible({ timeout: 60_000 });
  await run.proxy.open();
  await page.getByRole('button', { name: 'Retry now' }).click();
  await expect(page.getByText('Connection lost')).toBeHidden();
  await expect(page.locator('.phase')).toContainText('live');
  // The history has no gap, because the run sends missed samples.
  await page.getByRole('button', { name: 'Table of Throughput' }).click();
  const table = page.getByRole('group', { name: 'Table of Throughput' });
  const times = async () =>
    (await table.locator('tbody th').allInnerTexts()).map((text) => {
      const [minutes = 0, rest = 0] = text.split(':').map(Number);
      return minutes * 60 + rest;
    });
  // In a shorter run, a paused chart continues until 10 s.
  await expect
    .poll(async () => (await times())[0] ?? 0, { timeout: 20_000 })
    .toBeGreaterThan(Math.max(found + 1, 10));
  await page.getByRole('button', { name: 'Pause charts' }).click();
  const csv = await downloaded(page, () => page.getByRole('button', { name: 'CSV' }).click());
  const [, ...lines] = csv.toString().trim().split('\r\n');
  const exported = lines.map((line) => Number(line.split(',')[1]));
  // Machine pauses cause missing samples; only these may be missing.
  const history = (await run.ask<HistoryColumns>('/v1/history/link.up')).elapsed_s;
  const shown = history.filter((time) => time <= (exported.at(-1) ?? 0));
  expect(shown.filter((time) => time > lost && time < found).length).toBeGreaterThan(10);
  expect(exported).toEqual(shown);
  // Each interval with samples has a row.
  const step = Number(/means over ([\d.]+) s/.exec(await table.innerText())?.[1]);
  const slots = shown.map((time) => Math.floor(time / step + 1e-6) * step);
  expect((await times()).reverse()).toEqual([...new Set(slots)]);
});

test('recovers without user action', async ({ page }) => {
  await open(page, run.cutUrl);
  await run.proxy.cut();
  await expect(page.getByText('Connection lost')).toBeVisible();
  await run.proxy.open();
  await expect(page.getByText('Connection lost')).toBeHidden({ timeout: 15_000 });
});

test('reports the end of the run, and keeps the data', async ({ page }) => {
  await open(page, run.url);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  await expect(page.locator('.chart')).toHaveCount(5);
  await seconds(1);
  for (const hash of ['#/', '#/changes', '#/fidelity', '#/link/link.up']) {
    await page.evaluate((to) => (location.hash = to), hash);
    await seconds(1);
  }
  await run.stop();
  await expect(page.getByText('The run has ended')).toBeVisible();
  await seconds(2);
  await expect(page.getByText('Connection lost')).toBeHidden();
  await expect(page.locator('.summary').first()).toContainText('delivered');
  expect((await glance(page))['Delivered']).toContain('frames');
  for (const name of ['On', 'Pause', 'Off']) {
    await expect(page.getByRole('button', { name, exact: true })).toBeDisabled();
  }
  // Other views show their last data without waiting for a response.
  for (const [hash, text] of [
    ['#/', 'Links'],
    ['#/changes', 'can no longer be changed'],
    ['#/fidelity', 'Machine pauses'],
    ['#/flows/link.up', 'before this view was opened'],
  ] as const) {
    await page.evaluate((to) => (location.hash = to), hash);
    await expect(page.getByRole('main').getByText(text).first()).toBeVisible();
    await expect(page.getByText('Loading')).toHaveCount(0);
  }
  await expect(page.getByRole('button', { name: 'Apply' })).toHaveCount(0);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  await expect(page.locator('.chart')).toHaveCount(5);
});

test('tabs share one stream, and a tab without the token joins them', async ({ page, context }) => {
  const streams: string[] = [];
  run.proxy.onRequest = (path) => {
    if (path.includes('/stream')) streams.push(path);
  };
  await open(page, run.cutUrl);
  const second = await context.newPage();
  await open(second, run.cutUrl);
  const third = await context.newPage();
  await open(third, run.proxy.url);
  for (const each of [page, second, third]) {
    await each.bringToFront();
    await each.evaluate(() => (location.hash = '#/link/link.up'));
    await expect(each.locator('.chart')).toHaveCount(5);
  }
  expect(streams.filter((path) => path.includes('stats')).length).toBe(1);
  expect(streams.filter((path) => path.includes('history')).length).toBe(1);
  // The address bar, and thus bookmarks and screenshots, contain no token.
  expect(page.url()).not.toContain('token');
  await third.close();
  await second.close();
  await seconds(1);
  await page.bringToFront();
  await expect(page.locator('.phase')).toContainText('live');
});

test('works without shared workers', async ({ page }) => {
  await page.addInitScript(() => {
    Reflect.deleteProperty(window, 'SharedWorker');
  });
  await open(page, run.url);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  await expect(page.locator('.chart')).toHaveCount(5);
});

test('without a token, the page explains what is missing', async ({ page }) => {
  await page.goto(new URL(run.url).origin);
  await expect(page.getByText('needs the token')).toBeVisible();
});

test('reports a wrong token, and does not retry it', async ({ page }) => {
  let requests = 0;
  run.proxy.onRequest = () => (requests += 1);
  await page.goto(`${run.proxy.url}/#token=${'0'.repeat(48)}`);
  await expect(page.getByText('refuses this token')).toBeVisible();
  await seconds(1);
  const before = requests;
  await seconds(3);
  expect(requests).toBe(before);
});

test('with a read-only token, the page shows everything, without controls', async ({ page }) => {
  await openTable(page, run.readUrl);
  await expect(page.getByText('read only')).toBeVisible();
  await expect(
    page.getByRole('link', { name: /^Change/ }).filter({ hasText: /all|these/ }),
  ).toHaveCount(0);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  await expect(page.locator('.chart')).toHaveCount(5);
  for (const name of ['On', 'Off', 'Undo']) {
    await expect(page.getByRole('button', { name, exact: true })).toHaveCount(0);
  }
  await page.evaluate(() => (location.hash = '#/changes'));
  await expect(page.getByText('read-only token')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Apply' })).toHaveCount(0);
  await page.evaluate(() => (location.hash = '#/fidelity'));
  await expect(page.getByRole('heading', { name: 'Lateness' })).toBeVisible();
  await page.evaluate(() => (location.hash = '#/flows/link.up'));
  await expect(page.getByText('icmp').first()).toBeVisible();
});
