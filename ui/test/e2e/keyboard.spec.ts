// Operation by keyboard only: no test in this file uses the pointer.
import type { Page } from '@playwright/test';
import type { Changes, Link } from '../../src/api/types';
import { expect, open, openCharts, openTable, seconds, showTable, test } from './base';
import { type Run, startRun } from './run';

let run: Run;

test.beforeAll(async () => {
  run = await startRun(['--rate', '10mbit', '--time', '120s'], ['ping', '-i', '0.02', 'far']);
});

test.afterAll(() => run.stop());

/** Presses Tab until a matching element is focused; each focused element must be visible. */
async function tabTo(page: Page, selector: string, name?: string | RegExp): Promise<void> {
  const target = name ? page.locator(selector, { hasText: name }) : page.locator(selector);
  for (let times = 0; times < 120; times += 1) {
    await page.keyboard.press('Tab');
    const seen = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return true;
      const style = getComputedStyle(element);
      const framed = element.closest('a')?.querySelector('.frame');
      return (
        style.outlineStyle !== 'none' || (framed && getComputedStyle(framed).strokeWidth === '3px')
      );
    });
    expect(
      seen,
      `the focus is visible on ${await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 90))}`,
    ).toBeTruthy();
    if (await target.evaluateAll((elements) => elements.includes(document.activeElement as never)))
      return;
  }
  throw new Error(`Tab does not lead to ${selector} ${name ?? ''}`);
}

test('from the table to a chart', async ({ page }) => {
  await openCharts(page, run.url);
  await tabTo(page, 'a', 'Skip to the view');
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  await showTable(page);
  await tabTo(page, '.grid');
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('row', { name: /link\.up/ })).toHaveAttribute(
    'aria-selected',
    'true',
  );
  await page.keyboard.press('Home');
  await expect(page.getByRole('row', { name: /link\.down/ })).toHaveAttribute(
    'aria-selected',
    'true',
  );
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'link.up', level: 1 })).toBeVisible();
  await expect(page.locator('main')).toBeFocused();
  await expect(page).toHaveTitle(/link\.up/);

  await expect(page.locator('.chart')).toHaveCount(5);
  await seconds(1);
  await tabTo(page, '.plot');
  for (let times = 0; times < 5; times += 1) await page.keyboard.press('ArrowLeft');
  // All charts share the cursor.
  await expect(page.locator('.legend .at')).toHaveCount(5);
  const range = page.locator('.toolbar .more').first();
  const before = await range.innerText();
  await page.keyboard.press('+');
  await expect(page.getByRole('button', { name: 'Reset zoom' })).toBeEnabled();
  expect(await range.innerText()).not.toBe(before);
  await page.keyboard.press('Shift+ArrowLeft');
  await page.keyboard.press('0');
  await expect(page.getByRole('button', { name: 'Reset zoom' })).toBeDisabled();
  await tabTo(page, 'button', 'Table of Queue');
  await page.keyboard.press('Space');
  await expect(page.getByRole('table', { name: /Queue/ })).toBeVisible();
  // The chart is between the button and the table.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('group', { name: 'Table of Queue' })).toBeFocused();
});

test('sorting and searching', async ({ page }) => {
  await openTable(page, run.url);
  await tabTo(page, 'input[type=search]');
  await page.keyboard.type('up');
  await expect(page.locator('.grid-body .grid-row')).toHaveCount(1);
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await expect(page.locator('.grid-body .grid-row')).toHaveCount(2);
  await tabTo(page, '.grid-head button', 'Drops');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('columnheader', { name: 'Drops' })).toHaveAttribute(
    'aria-sort',
    'descending',
  );
  await expect(page.getByRole('button', { name: 'Drops' })).toBeFocused();
});

test('a change and its undo', async ({ page }) => {
  await openCharts(page, run.url);
  await tabTo(page, 'header nav a', 'Changes');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Make a change' })).toBeVisible();
  await tabTo(page, 'input[list]');
  await page.keyboard.type('link.up');
  await page.keyboard.press('Escape');
  await tabTo(page, 'select[id$="-rate"]');
  await page.keyboard.type('fixed');
  await tabTo(page, 'input[id$="-rate-rate"]');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('fast');
  await expect(page.locator('[id$="-rate-rate-hint"] .problem')).toContainText('fast');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('3mbit');
  await expect(page.getByRole('button', { name: 'Apply' })).toBeEnabled();
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^Done/)).toBeVisible();
  expect((await run.ask<Link>('/v1/links/link')).up.options['rate']).toBe('3mbit');
  await tabTo(page, '.changes button', 'Undo');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^Undone/)).toBeVisible();
  expect((await run.ask<Link>('/v1/links/link')).up.options['rate']).toBe('10mbit');
  expect((await run.ask<Changes>('/v1/changes')).changes.length).toBe(2);
});

test('the chosen colours persist', async ({ page }) => {
  await open(page, run.url);
  const paper = () =>
    page.evaluate(
      () => getComputedStyle(document.querySelector('header') as Element).backgroundColor,
    );
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await paper();
  await tabTo(page, 'header button');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  const dark = await paper();
  expect(dark).not.toBe(light);
  await page.reload();
  await page.locator('header').waitFor();
  expect(await paper()).toBe(dark);
});
