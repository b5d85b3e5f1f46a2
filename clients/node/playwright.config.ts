import { defineConfig } from "@playwright/test";

// Debian's Chromium; without a path, Playwright's own is used.
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "browser",
  outputDir: "dist/browser-results",
  reporter: "list",
  use: { launchOptions: { executablePath } },
});
