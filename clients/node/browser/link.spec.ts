import type { Page } from "@playwright/test";
import { expect, test } from "longwire/playwright";

test.beforeEach(async ({ link, page }) => {
  link.far.spawn(process.execPath, ["dist/browser/server.js"], { stdio: "inherit" });
  await link.far.listening(8000);
  await page.goto("http://far:8000/");
});

/** Returns the times of a request and of an echo over an open WebSocket, in milliseconds. */
async function measure(page: Page): Promise<{ overFetch: number; overWebSocket: number }> {
  return page.evaluate(async () => {
    const timed = async (work: () => Promise<unknown>) => {
      const start = performance.now();
      await work();
      return performance.now() - start;
    };
    const socket = new WebSocket(`ws://${location.host}/echo`);
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const overWebSocket = await timed(() => {
      const echo = new Promise((resolve) => socket.addEventListener("message", resolve));
      socket.send("x");
      return echo;
    });
    socket.close();
    const request = async () => (await fetch("/answer", { cache: "no-store" })).text();
    await request();
    return { overFetch: await timed(request), overWebSocket };
  });
}

for (const delay of [5, 60]) {
  test.describe(`delay of ${delay} ms`, () => {
    test.use({ linkOptions: { delay: `${delay}ms` } });

    test("requests and WebSockets cross the link", async ({ page, link }) => {
      // A busy machine delays some of them, but not all.
      const least = { overFetch: Infinity, overWebSocket: Infinity };
      for (let round = 0; round < 8; round++) {
        const { overFetch, overWebSocket } = await measure(page);
        least.overFetch = Math.min(least.overFetch, overFetch);
        least.overWebSocket = Math.min(least.overWebSocket, overWebSocket);
      }
      for (const found of [least.overFetch, least.overWebSocket]) {
        expect(found).toBeGreaterThanOrEqual(2 * delay);
        expect(found).toBeLessThan(2 * delay + 80);
      }
      (await link.report()).require("artifacts-lost=0");
    });
  });
}

test.describe("a link that changes", () => {
  test.use({ linkOptions: { delay: "5ms" } });

  test("the page notices", async ({ page, link }) => {
    const before = await measure(page);
    await link.set({ delay: "100ms" });
    const after = await measure(page);
    expect(before.overWebSocket).toBeLessThan(after.overWebSocket);
    expect(after.overWebSocket).toBeGreaterThanOrEqual(200);
    expect(after.overFetch).toBeGreaterThanOrEqual(200);
  });

  test("an outage fails a request of the page", async ({ page, link }) => {
    await link.off();
    const failed = page.evaluate(() =>
      fetch("/answer", { cache: "no-store", signal: AbortSignal.timeout(500) }).then(
        () => "answered",
        (error: unknown) => (error as Error).name,
      ),
    );
    expect(await failed).toBe("TimeoutError");
    await link.on();
  });
});
