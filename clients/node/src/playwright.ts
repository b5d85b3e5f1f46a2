import { test as base, expect } from "@playwright/test";
import { type Link, type LinkOptions, link as start } from "./link.js";

/** The fixtures of a link. */
export interface LinkFixtures {
  /** Options of the link: `test.use({ linkOptions: { delay: "60ms" } })`. */
  linkOptions: LinkOptions;
  /** The link of the test. The server under test runs in `link.far`. */
  link: Link;
}

/**
 * A test with a browser in the near network of its link. `page` and `context`
 * belong to this browser; `browser` and `request` are outside the network.
 */
export const test = base.extend<LinkFixtures>({
  linkOptions: [{}, { option: true }],

  link: async ({ linkOptions }, use, testInfo) => {
    const live = await start(linkOptions);
    try {
      await use(live);
      if (testInfo.status !== testInfo.expectedStatus) {
        const body = JSON.stringify((await live.report()).data, undefined, 2);
        await testInfo.attach("link-report.json", { body, contentType: "application/json" });
      }
    } finally {
      await live.close();
    }
  },

  context: async ({ playwright, browserName, launchOptions, link }, use) => {
    const type = playwright[browserName];
    const program = launchOptions.executablePath ?? type.executablePath();
    const browser = await type.launch({
      ...launchOptions,
      executablePath: await link.near.script(program),
    });
    try {
      await use(await browser.newContext());
    } finally {
      await browser.close();
    }
  },
});

export { expect };
