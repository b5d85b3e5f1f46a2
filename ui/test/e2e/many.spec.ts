// 10,000 links: first view, scrolling, searching, and a page left open.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CDPSession, Page } from '@playwright/test';
import { expect, open, seconds, test } from './base';
import { type Run, startRun } from './run';

const links = 10_000;
let folder: string;
let run: Run;

// Created in the hook, because the runner loads this file more than once.
test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'longwire-page-'));
  const file = join(folder, 'many.toml');
  writeFileSync(
    file,
    `[ports]\nnear = "packet:eth1"\nfar = "packet:eth2"\n
[[link]]\nname = "all"\nrate = "20mbit"\nmatch = "in-port=near,dst=10.77.0.2"\n
[[link]]\nname = "adsl{n}"\ncount = ${links - 1}\nrate = "10mbit"\ndelay = "10ms"\nmatch = "in-port=near,src=10.0.0.0/8,dport={n}"\n`,
  );
  run = await startRun(
    ['--time', '150s', '--peer', 'iperf3 -s', file],
    ['iperf3', '-4', '-t', '140', '-c', 'far'],
  );
  await seconds(2);
});

test.afterAll(async () => {
  await run?.stop();
  rmSync(folder, { recursive: true });
});

/** Opens the page and returns the time until its first rows, in milliseconds. */
async function firstView(page: Page): Promise<number> {
  // Start from a loaded page, because browser startup does not count.
  await page.goto('about:blank');
  const start = Date.now();
  await page.goto(run.url, { waitUntil: 'commit' });
  await page.locator('.grid-body .grid-row .num').first().waitFor();
  const taken = Date.now() - start;
  console.log(`first view of ${links} links: ${taken} ms`);
  return taken;
}

test('the first view appears within a second', async ({ page, context, browser }) => {
  const targets = await browser.newBrowserCDPSession();
  const hasWorker = async () =>
    (await targets.send('Target.getTargets')).targetInfos.some(
      ({ type }) => type === 'shared_worker',
    );
  let shown = page;
  let least = await firstView(shown);
  // A busy machine is late only sometimes; a slow page is late every time.
  for (let times = 1; times < 5 && least >= 1000; times += 1) {
    // The next page starts without the previous page's shared worker and cache.
    const next = await context.newPage();
    await shown.close();
    await expect.poll(hasWorker).toBe(false);
    await (await context.newCDPSession(next)).send('Network.clearBrowserCache');
    shown = next;
    least = Math.min(least, await firstView(shown));
  }
  expect(least).toBeLessThan(1000);
  await expect(shown.getByText('20,000 directions')).toBeVisible();
  // The document contains only visible rows.
  expect(await shown.locator('.grid-body .grid-row').count()).toBeLessThan(60);
});

/** Scrolls through a share of the table in a given time and measures the displayed frames. */
async function scroll(page: Page, pixelsPerFrame: number, milliseconds: number): Promise<number[]> {
  return page.locator('.grid').evaluate(
    (grid, [step, length]) =>
      new Promise<number[]>((resolve) => {
        const gaps: number[] = [];
        let before = 0;
        const start = performance.now();
        const frame = (now: number): void => {
          if (before > 0) gaps.push(now - before);
          before = now;
          grid.scrollTop += step as number;
          if (now - start < (length as number)) requestAnimationFrame(frame);
          else resolve(gaps);
        };
        requestAnimationFrame(frame);
      }),
    [pixelsPerFrame, milliseconds],
  );
}

/** Returns the CPU time of the page's main thread so far, in milliseconds. */
async function cpuTime(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
}

test('scrolling leaves time for 60 frames per second', async ({ page, context }) => {
  await open(page, run.url);
  await page.locator('.grid-body .grid-row .num').first().waitFor();
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  for (const [name, step] of [
    ['slowly', 12],
    ['fast', 400],
  ] as const) {
    const before = await cpuTime(session);
    const gaps = (await scroll(page, step, 3000)).sort((a, b) => a - b);
    // On a busy machine, other programs take time between frames, but not CPU time of this thread.
    const cpu = ((await cpuTime(session)) - before) / gaps.length;
    const rate = 1000 / (gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length);
    const p95 = gaps[Math.floor(gaps.length * 0.95)] ?? 0;
    const figures = [`${rate.toFixed(1)} frames/s`, `p95 ${p95.toFixed(1)} ms`];
    console.log(`${name}: ${figures.join(', ')}, CPU ${cpu.toFixed(1)} ms per frame`);
    // The rest of the frame is for painting, in other threads.
    expect(cpu, name).toBeLessThan(10);
  }
  await expect(page.locator('.grid-body .grid-row .num').first()).toBeVisible();
});

test('searches, sorts, and reaches the last row', async ({ page }) => {
  await open(page, run.url);
  await page.getByRole('searchbox').fill('adsl999');
  await expect(page.getByText('22 of 20,000 directions')).toBeVisible();
  await page.getByRole('searchbox').fill('');
  await page.getByRole('button', { name: 'Delivered' }).click();
  await expect(page.locator('.grid-body .grid-row').first()).toContainText('all.up');
  await page.getByRole('button', { name: 'Direction' }).click();
  await page.locator('.grid').focus();
  await page.keyboard.press('End');
  await expect(page.locator('#row-19999')).toContainText(/adsl|all/);
  await expect(page.locator('#row-19999')).toHaveAttribute('aria-selected', 'true');
});

test('a page left open leaks nothing', async ({ page, context }) => {
  test.setTimeout(150_000);
  await open(page, run.url);
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  const measure = async (): Promise<Record<string, number>> => {
    // Collect several times, because a collection may release references to more objects.
    for (let times = 0; times < 3; times += 1) await session.send('HeapProfiler.collectGarbage');
    const { metrics } = await session.send('Performance.getMetrics');
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  };
  const round = async (at: number): Promise<void> => {
    for (const hash of [
      '#/',
      `#/link/adsl${at}.up`,
      '#/link/all.up',
      '#/flows/all.up',
      '#/fidelity',
      '#/changes',
    ]) {
      await page.evaluate((to) => (location.hash = to), hash);
      await page.waitForTimeout(250);
    }
    await page.evaluate(() => (location.hash = '#/'));
    await page.locator('.grid').evaluate((grid, to) => (grid.scrollTop = to), at * 3000);
    await page.waitForTimeout(250);
  };
  for (let at = 1; at <= 5; at += 1) await round(at);
  const before = await measure();
  for (let at = 6; at <= 30; at += 1) await round(at);
  const after = await measure();
  const grown = (name: string): number => (after[name] ?? 0) - (before[name] ?? 0);
  console.log(
    `after 25 rounds of all views: heap ${(grown('JSHeapUsedSize') / 1024).toFixed(0)} KiB, nodes ${grown('Nodes')}, listeners ${grown('JSEventListeners')}`,
  );
  // A leaked view would add 25 times its nodes (hundreds), listeners (dozens) and history (1 MB).
  expect(grown('Nodes')).toBeLessThan(400);
  expect(grown('JSEventListeners')).toBeLessThan(50);
  expect(grown('JSHeapUsedSize')).toBeLessThan(2 * 1024 * 1024);
});
