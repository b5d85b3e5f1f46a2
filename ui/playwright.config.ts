import { defineConfig } from '@playwright/test';

// Uses Debian's browser, so nothing is downloaded.
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export default defineConfig({
  testDir: 'test/e2e',
  testMatch: process.env['SHOOT'] ? 'shots.ts' : '*.spec.ts',
  // Each test has a separate run with traffic; concurrent runs would delay each other.
  workers: 1,
  fullyParallel: false,
  timeout: 90_000,
  retries: 0,
  reporter: [['list']],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath,
      // The browser's sandbox does not work as root, the user in CI.
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    },
  },
});
