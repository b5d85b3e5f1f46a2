import { defineConfig } from '@playwright/test';

// The browser is Debian's: nothing is downloaded.
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export default defineConfig({
  testDir: 'test/e2e',
  testMatch: process.env['SHOOT'] ? 'shots.ts' : '*.spec.ts',
  // Every test has a run of its own, with traffic; two at once would make each other late.
  workers: 1,
  fullyParallel: false,
  timeout: 90_000,
  retries: 0,
  reporter: [['list']],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath,
      // Root cannot use the browser's sandbox, and CI is root.
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    },
  },
});
