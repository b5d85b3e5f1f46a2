// Takes screenshots of every view of a real run, in both themes and two sizes:
// `LONGWIRE_PROGRAM=… npm run shots`. Not a test.
import { mkdirSync, writeFileSync } from 'node:fs';
import { test } from '@playwright/test';
import { startRun } from './run';

const sizes = { wide: [1280, 800], narrow: [390, 844] } as const;
// A run with one link opens the view of its link, which would replace the overview.
const views = {
  link: '#/link/link.up',
  overview: '#/',
  flows: '#/flows/link.up',
  fidelity: '#/fidelity',
  changes: '#/changes?target=link.up',
};

const folder = process.env['SHOTS'] ?? 'shots';

test('screenshots of every view', async ({ browser }) => {
  test.setTimeout(300_000);
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    `${folder}/scenario.toml`,
    [15, 25, 200, 260]
      .map(
        (time, at) =>
          `[[at]]\ntime = "${time}s"\nset = { link = { rate = "${4 + at * 3}mbit" } }\n`,
      )
      .join('\n'),
  );
  const run = await startRun(
    [
      '--rate',
      '10mbit',
      '--delay',
      'normal:20ms,1ms',
      '--loss',
      '0.2%',
      '--queue',
      '60p',
      '--time',
      '250s',
      '--scenario',
      `${folder}/scenario.toml`,
      '--peer',
      'iperf3 -s',
    ],
    ['iperf3', '-t', '240', '-P', '3', '-c', 'far'],
  );
  try {
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    for (const scheme of ['light', 'dark'] as const) {
      for (const [size, [width, height]] of Object.entries(sizes)) {
        const context = await browser.newContext({
          colorScheme: scheme,
          viewport: { width, height },
        });
        const page = await context.newPage();
        await page.goto(run.url);
        for (const [name, hash] of Object.entries(views)) {
          await page.evaluate((to) => (location.hash = to), hash);
          await page.waitForTimeout(name === 'flows' ? 3500 : 1600);
          if (name === 'changes') {
            const delay = page.locator('select[id$="-delay"]');
            if (await delay.count()) {
              await delay.selectOption('normal');
              await page.getByLabel('stddev', { exact: true }).fill('fast');
              await page.waitForTimeout(800);
            }
          }
          // In a full-page screenshot, the bar at the bottom of the screen would hide content.
          await page.addStyleTag({ content: '.apply { position: static }' });
          await page.screenshot({
            path: `${folder}/${name}-${scheme}-${size}.png`,
            fullPage: name !== 'overview' || size === 'narrow',
          });
        }
        await context.close();
      }
    }
  } finally {
    await run.stop();
  }
});
