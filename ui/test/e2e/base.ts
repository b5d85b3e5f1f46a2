import { type BrowserContext, expect, type Page, test as plain } from '@playwright/test';
import type { Run } from './run';

export { expect };

/** Browser messages about requests that fail by design of a test. */
const expectedErrors = /Failed to load resource|net::ERR_/;

/** A test that fails if a page logs an error, violates its policy, or requests another origin. */
export const test = plain.extend<{ watched: undefined }>({
  watched: [
    async ({ context }, use) => {
      const wrong: string[] = [];
      watch(context, wrong);
      await use(undefined);
      expect(wrong, 'errors, and requests to other origins').toEqual([]);
    },
    { auto: true },
  ],
});

function watch(context: BrowserContext, wrong: string[]): void {
  context.on('console', (message) => {
    if (message.type() === 'error' && !expectedErrors.test(message.text())) {
      wrong.push(message.text());
    }
  });
  context.on('weberror', (error) => wrong.push(error.error().message));
  context.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol !== 'blob:' && hostname !== '127.0.0.1') wrong.push(request.url());
  });
}

export async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect(page.locator('.phase')).toContainText('live');
}

/** Opens a run with one link and waits for its charts, to which the page switches by itself. */
export async function openCharts(page: Page, url: string): Promise<void> {
  await open(page, url);
  await expect(page.getByRole('heading', { name: 'link.up', level: 1 })).toBeVisible();
  // The page moves the focus after it has changed the view.
  await expect(page.locator('main')).toBeFocused();
}

/** Opens a run with one link and switches to the table. */
export async function openTable(page: Page, url: string): Promise<void> {
  await openCharts(page, url);
  await showTable(page);
}

export async function showTable(page: Page): Promise<void> {
  await page.evaluate(() => (location.hash = '#/'));
  await expect(page.getByRole('row', { name: /link\.up/ })).toBeVisible();
}

/** Returns the figures in the header as text. */
export async function glance(page: Page): Promise<Record<string, string>> {
  const figures = await page.locator('.figure').all();
  const texts = await Promise.all(
    figures.map(async (figure) => [
      await figure.locator('dt').innerText(),
      (await figure.locator('dd').allInnerTexts()).join(' '),
    ]),
  );
  return Object.fromEntries(texts);
}

/** Parses text such as "9.53 Mbit/s" or "1.2 k" as a number. */
export function parse(text: string): number {
  const match = /([\d.,]+)\s*([TGMk]?)/.exec(text);
  const factors: Record<string, number> = { T: 1e12, G: 1e9, M: 1e6, k: 1e3, '': 1 };
  return Number(match?.[1]?.replaceAll(',', '')) * (factors[match?.[2] ?? ''] ?? 1);
}

export async function downloaded(page: Page, act: () => Promise<void>): Promise<Buffer> {
  const waiting = page.waitForEvent('download');
  await act();
  const stream = await (await waiting).createReadStream();
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

export function seconds(count: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, count * 1000));
}

export type { Run };
