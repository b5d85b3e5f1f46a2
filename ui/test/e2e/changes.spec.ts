// The form: every model, changes with several parts, presets, undo, scenario, recorder.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Changes, Link, Registry } from '../../src/api/types';
import { writeOption } from '../../src/change/optiontext';
import { optionKinds } from '../../src/change/registry';
import { downloaded, expect, open, seconds, test } from './base';
import { type Run, startRun } from './run';

let folder: string;
let run: Run;

// Created in the hook, because the runner loads this file more than once.
test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'longwire-page-'));
});

test.beforeEach(async () => {
  const scenario = join(folder, 'scenario.toml');
  writeFileSync(
    scenario,
    [50, 80, 90]
      .map((time) => `[[at]]\ntime = "${time}s"\nset = { link = { delay = "${time}ms" } }\n`)
      .join('\n'),
  );
  run = await startRun(
    ['--rate', '10mbit', '--delay', '5ms', '--time', '60s', '--scenario', scenario],
    ['ping', '-i', '0.05', 'far'],
  );
});

test.afterEach(() => run.stop());
test.afterAll(() => rmSync(folder, { recursive: true }));

const link = () => run.ask<Link>('/v1/links/link');
const changes = async () => (await run.ask<Changes>('/v1/changes')).changes;

async function toChanges(page: Page, target: string, url = run.url): Promise<void> {
  await open(page, url);
  await page.evaluate((to) => (location.hash = to), `#/changes?target=${target}`);
  await expect(page.locator('.option-row').first()).toBeVisible();
}

test('writes every model in the registry in the syntax of the run', async () => {
  const registry = await run.ask<Registry>('/v1/models');
  const kinds = new Set<string>(optionKinds);
  // The form offers every option and model in the registry.
  const refused: string[] = [];
  let tried = 0;
  for (const model of registry.models.filter(({ kind }) => kinds.has(kind))) {
    if (model.params.some(({ unit, default: fallback }) => unit === 'file' && fallback === null))
      continue;
    const params = Object.fromEntries(
      model.params
        .filter(({ default: fallback }) => fallback === null)
        .map(({ name, example, choices }) => [name, example ?? choices?.[0] ?? '']),
    );
    const value = writeOption(registry, model.kind, { mode: 'model', model: model.name, params });
    tried += 1;
    try {
      const body = { set: { link: { [model.kind]: value } } };
      await run.ask('/v1/changes?check=true', { method: 'POST', body });
    } catch (error) {
      refused.push(`${model.kind} ${value}: ${error}`);
    }
  }
  expect(tried).toBeGreaterThan(45);
  // Only mutually exclusive parameters may be refused, with that reason.
  expect(refused).toEqual([]);
});

test('shows a problem at its field, with reason and remedy, before the change is sent', async ({
  page,
}) => {
  await toChanges(page, 'link.up');
  await page.locator('select[id$="-loss"]').selectOption('packet');
  await page.locator('input[id$="-loss-rate"]').fill('200%');
  const field = page.locator('input[id$="-loss-rate"]');
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  await expect(page.locator('[id$="-loss-rate-hint"] .problem')).toContainText(
    'the maximum is 100%',
  );
  await expect(page.getByRole('button', { name: 'Apply' })).toBeDisabled();
  await field.fill('2%');
  await expect(page.getByText('Valid; changes 1 link.')).toBeVisible();
  await expect(field).toHaveAttribute('aria-invalid', 'false');
  expect(await changes()).toEqual([]);
});

test('a validation without a response is not a problem of a field', async ({ page }) => {
  await toChanges(page, 'link.up', run.cutUrl);
  await run.proxy.cut();
  await page.locator('select[id$="-loss"]').selectOption('packet');
  await page.locator('input[id$="-loss-rate"]').fill('2%');
  const verdict = page.locator('.verdict-line');
  await expect(verdict).toHaveText('the run does not respond');
  await expect(page.getByRole('button', { name: 'Apply' })).toBeDisabled();
});

test('several options and parts form one change at a given time', async ({ page }) => {
  await toChanges(page, 'link.up');
  await expect(page.locator('.option-row').first()).toContainText('now 10mbit');
  await page.locator('select[id$="-rate"]').selectOption('fixed');
  // The form starts with the current value.
  await expect(page.locator('input[id$="-rate-rate"]')).toHaveValue('10mbit');
  await page.locator('input[id$="-rate-rate"]').fill('3mbit');
  await page.locator('select[id$="-delay"]').selectOption('normal');
  await page.getByLabel('mean', { exact: true }).fill('30ms');
  await page.getByLabel('stddev', { exact: true }).fill('2ms');
  await page.getByRole('button', { name: 'Add a part' }).click();
  const second = page.getByRole('group', { name: 'Part 2' });
  await second.getByRole('combobox', { name: 'Links' }).fill('link.down');
  await second.getByLabel('Action').selectOption('pause');
  await page.getByRole('radio', { name: 'in …' }).check();
  await page.getByRole('textbox', { name: 'Time from now' }).fill('10s');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText(/^Done: 1 link, at/)).toBeVisible();
  const [made, ...others] = await changes();
  expect(others).toEqual([]);
  expect(made?.change).toEqual({
    in: '10s',
    set: { 'link.up': { rate: '3mbit', delay: 'normal:mean=30ms,stddev=2ms' } },
    pause: ['link.down'],
  });
  expect((await link()).down?.state).toBe('on');
  await expect(page.getByText('scheduled', { exact: true })).toBeVisible();
  const now = async () => {
    const { up, down } = await link();
    return [up.options['rate'], down?.state];
  };
  await expect.poll(now, { timeout: 12_000 }).toEqual(['3mbit', 'paused']);
  await page.getByRole('button', { name: /^Undo/ }).click();
  await expect(page.getByText(/^Undone/)).toBeVisible();
  const back = await link();
  expect(back.up.options).toEqual({ rate: '10mbit', delay: '5ms' });
  expect(back.down?.state).toBe('on');
});

test('a preset sets both directions, and undo reports what it cannot restore', async ({ page }) => {
  await toChanges(page, 'link');
  await page.getByLabel('Preset').selectOption('lte');
  await expect(page.getByText(/^Valid;/)).toBeVisible();
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText(/^Done/)).toBeVisible();
  const lte = (await run.ask<Registry>('/v1/models')).presets.find(({ name }) => name === 'lte');
  const set = await link();
  expect(String(set.up.options['rate'])).toBe(String(lte?.up['rate']));
  expect(String(set.down?.options['rate'])).toBe(String(lte?.down['rate']));
  await page.getByRole('button', { name: /^Undo/ }).click();
  await expect(page.getByText(/^Undone/)).toBeVisible();
  expect((await link()).up.options['rate']).toBe('10mbit');
});

test('off, pause and on from the view of a link', async ({ page }) => {
  await open(page, run.url);
  await page.evaluate(() => (location.hash = '#/link/link.up'));
  for (const [button, state] of [
    ['Off', 'off'],
    ['Pause', 'paused'],
    ['On', 'on'],
  ] as const) {
    await page.getByRole('button', { name: button, exact: true }).click();
    await expect(page.locator('.link-head .state')).toHaveText(state);
    expect((await link()).up.state).toBe(state);
    expect((await link()).down?.state).toBe('on');
  }
  await page.getByRole('button', { name: /^Undo/ }).click();
  await expect(page.locator('.link-head .state')).toHaveText('paused');
});

test('the timeline shows upcoming events, and skips to the next', async ({ page }) => {
  await toChanges(page, 'link');
  const upcoming = page.getByRole('list', { name: 'Upcoming events' }).getByRole('listitem');
  await expect(upcoming).toHaveCount(3);
  await expect(upcoming.first()).toContainText('0:50.0');
  await expect(upcoming.first()).toContainText('link: delay=50ms');
  await expect(page.getByRole('img', { name: /0 of 3 events done/ })).toBeVisible();
  await page.getByRole('button', { name: 'Skip to the next event' }).click();
  await expect(page.getByRole('img', { name: /1 of 3 events done/ })).toBeVisible();
  await expect(upcoming).toHaveCount(2);
  expect((await link()).up.options['delay']).toBe('50ms');
});

test('the recorder writes a scenario that repeats the changes', async ({ page }) => {
  await toChanges(page, 'link.up');
  await page.getByRole('button', { name: 'Record from now' }).click();
  // A change by another client is recorded too.
  await run.ask('/v1/changes', {
    method: 'POST',
    body: { set: { 'li*': { rate: '4mbit', loss: ['1%', '2%'] } } },
  });
  await seconds(0.5);
  await run.ask('/v1/links/link.down', { method: 'PATCH', body: { delay: '9ms' } });
  await run.ask('/v1/changes', { method: 'POST', body: { pause: ['link.up'] } });
  await expect(page.getByText(/: 3 changes/)).toBeVisible();
  await page.getByRole('checkbox', { name: /Keep the times/ }).uncheck();
  await page.getByRole('button', { name: 'Stop recording' }).click();
  const text = (
    await downloaded(page, () => page.getByRole('button', { name: /Download/ }).click())
  ).toString();
  expect(text.match(/\[\[at\]\]/g)?.length).toBe(3);
  const before = await link();
  const file = join(folder, 'recorded.toml');
  writeFileSync(file, text);
  const again = await startRun(
    ['--rate', '10mbit', '--delay', '5ms', '--time', '30s', '--scenario', file],
    ['sleep', '20'],
  );
  try {
    await expect
      .poll(async () => (await again.ask<Changes>('/v1/changes')).changes.length, {
        timeout: 20_000,
      })
      .toBe(3);
    await seconds(2.5);
    const after = await again.ask<Link>('/v1/links/link');
    expect(after.up.options).toEqual(before.up.options);
    expect(after.down?.options).toEqual(before.down?.options);
    expect(after.up.state).toBe('paused');
  } finally {
    await again.stop();
  }
});
