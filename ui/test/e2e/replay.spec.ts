// The page of a run that reads frames ahead and cannot be changed.
import { expect, open, test } from './base';
import { startGenerator } from './run';

test('shows the charts of an output, without controls', async ({ page }) => {
  const run = await startGenerator(
    '--to null --rate 500pps --sizes 200 --time 60s --link-rate 2mbit --delay 20ms'.split(' '),
  );
  try {
    await open(page, run.url);
    await expect(page.getByText('1 direction', { exact: true })).toBeVisible();
    await page.getByRole('link', { name: 'out', exact: true }).click();
    await expect(page.getByRole('heading', { name: 'out', exact: true })).toBeVisible();
    await expect(page.locator('.chart')).toHaveCount(5);
    await expect(page.locator('.summary').first()).toContainText('delivered');
    // 500 frames/s of 200 bytes.
    const rate = page
      .locator('.chart')
      .first()
      .getByText(/^(7\d\d|8[0-4]\d) kbit/);
    await expect(rate.first()).toBeVisible();
    for (const name of ['On', 'Pause', 'Off']) {
      await expect(page.getByRole('button', { name, exact: true })).toHaveCount(0);
    }
    await expect(page.getByRole('link', { name: 'Flows' })).toHaveCount(0);
    await page.evaluate(() => (location.hash = '#/changes'));
    await expect(page.getByText('This run is a replay')).toBeVisible();
  } finally {
    await run.stop();
  }
});
