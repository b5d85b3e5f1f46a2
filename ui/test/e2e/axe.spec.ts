// axe reports no violations in any view, in both themes, wide and narrow.
import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, open, openCharts, seconds, test } from './base';
import { type Run, startRun } from './run';

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
let run: Run;

test.beforeAll(async () => {
  run = await startRun(
    ['--rate', '5mbit', '--delay', '20ms', '--loss', '1%', '--time', '170s', '--peer', 'iperf3 -s'],
    ['iperf3', '-t', '160', '-c', 'far'],
  );
});

test.afterAll(() => run.stop());

async function nothing(page: Page, place: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).withTags(tags).analyze();
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
  );
  expect(found, place).toEqual([]);
}

async function show(page: Page, hash: string, sign: string): Promise<void> {
  await page.evaluate((to) => (location.hash = to), hash);
  await expect(page.locator(sign).first()).toBeVisible();
  await seconds(0.3);
}

async function everyView(page: Page, place: string): Promise<void> {
  await show(page, '#/', '.grid-body .grid-row .num');
  await nothing(page, `${place}: overview`);
  await page.getByRole('searchbox').fill('nothing like it');
  await expect(page.getByText('No direction matches')).toBeVisible();
  await nothing(page, `${place}: empty table`);
  await show(page, '#/link/link.up', '.chart');
  for (const button of await page.getByRole('button', { name: /^Table/ }).all())
    await button.click();
  await nothing(page, `${place}: link with tables`);
  await show(page, '#/link/nolink.up', '.problem');
  await nothing(page, `${place}: unknown link`);
  await show(page, '#/flows/link.up', 'table.flows td');
  await nothing(page, `${place}: flows`);
  await show(page, '#/fidelity', '.histogram');
  await page.getByRole('button', { name: /^Table/ }).click();
  await nothing(page, `${place}: fidelity`);
  await show(page, '#/changes?target=link.up', '.option-row');
  await page.locator('select[id$="-delay"]').selectOption('normal');
  await page.getByLabel('stddev', { exact: true }).fill('fast');
  await page.getByRole('button', { name: 'Add a part' }).click();
  await page.getByRole('radio', { name: 'in …' }).check();
  await page.getByRole('button', { name: 'Record from the start' }).click();
  await seconds(0.8);
  await nothing(page, `${place}: changes with a problem`);
}

for (const scheme of ['light', 'dark'] as const) {
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const) {
    test(`${scheme}, ${width} pixels wide`, async ({ page }) => {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      await openCharts(page, run.url);
      await everyView(page, `${scheme} ${width}`);
    });
  }
}

test('axe finds injected violations', async ({ page }) => {
  await open(page, run.url);
  await page.evaluate(() => {
    const button = document.createElement('button');
    button.style.cssText = 'width: 40px; height: 30px';
    document.querySelector('main')?.append(button);
  });
  const { violations } = await new AxeBuilder({ page }).withTags(tags).analyze();
  expect(violations.map(({ id }) => id)).toEqual(['button-name']);
});

test('with a read-only token, and without connection', async ({ page }) => {
  await open(page, run.readUrl);
  await show(page, '#/changes', '.notice');
  await nothing(page, 'read only');
  await page.goto(run.cutUrl);
  await expect(page.locator('.phase')).toContainText('live');
  await run.proxy.cut();
  await expect(page.getByText('Connection lost')).toBeVisible();
  await nothing(page, 'connection lost');
  await run.proxy.open();
});

test('every control is at least 24 pixels high', async ({ page }) => {
  await openCharts(page, run.url);
  for (const hash of ['#/', '#/link/link.up', '#/fidelity', '#/changes?target=link.up']) {
    await page.evaluate((to) => (location.hash = to), hash);
    await seconds(1);
    const small = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>('button, select, input, a.button, nav a, summary')]
        .filter((element) => element.checkVisibility())
        .map((element) => {
          // A check box is also toggled by its label.
          const target = element.closest('label.check') ?? element;
          const { width, height } = target.getBoundingClientRect();
          return { text: element.outerHTML.slice(0, 80), width, height };
        })
        .filter(({ width, height }) => width < 24 || height < 24),
    );
    expect(small, hash).toEqual([]);
  }
});
