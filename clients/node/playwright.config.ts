import { defineConfig } from "@playwright/test";

// Use Debian's Chromium; without a path, Playwright uses its bundled browser.
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "browser",
  outputDir: "dist/browser-results",
  reporter: "list",
  use: { launchOptions: { executablePath } },
});
