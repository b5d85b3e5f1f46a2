import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EndedError, FidelityError, type Link, link, RefusedError, StartError } from "longwire";

/**
 * Checks round trips from near to far, in milliseconds, and returns the number of pings. None may
 * be below `least`, and one must be below `most`: a busy machine delays some, not all.
 */
async function assertRoundTrip(live: Link, least: number, most: number): Promise<number> {
  const times: number[] = [];
  for (let sent = 5; ; sent += 5) {
    const { stdout } = await live.near.run("ping", ["-c", "5", "-i", "0.02", "far"]);
    times.push(...[...stdout.matchAll(/time=([\d.]+)/g)].map(([, time]) => Number(time)));
    const found = Math.min(...times);
    assert.ok(found >= least, `${found} ms is less than ${least}`);
    if (found < most) return sent;
    assert.ok(sent < 50, `${found} ms is not less than ${most}`);
  }
}

test("a link has its delay, and changes while it runs", async () => {
  await using live = await link({ delay: "20ms", rate: "10mbit" });
  let pings = await assertRoundTrip(live, 40, 90);
  await live.set({ delay: "50ms" });
  pings += await assertRoundTrip(live, 100, 150);
  await live.set({ delay: "10ms" }, "up");
  pings += await assertRoundTrip(live, 60, 95);
  let stats = await live.stats();
  // After a pause of the machine, ping may end before its last reply.
  for (let tries = 0; tries < 50 && stats.totals.packets_in < 2 * pings; tries += 1) {
    await sleep(100);
    stats = await live.stats();
  }
  assert.equal(stats.links, 2);
  assert.equal(stats.totals.packets_in, 2 * pings);
});

test("each direction has options", async () => {
  await using live = await link({ delay: "1ms", up: { delay: "20ms" }, down: { delay: "40ms" } });
  await assertRoundTrip(live, 60, 75);
});

test("a planned change comes at its time", async () => {
  await using live = await link();
  await live.change({ in: "3s", set: { link: { delay: "30ms" } } });
  await assertRoundTrip(live, 0, 50);
  await sleep(3500);
  await assertRoundTrip(live, 60, 100);
});

test("an outage loses frames until its end", async () => {
  await using live = await link();
  const once = () => live.near.run("ping", ["-c", "1", "-W", "1", "far"]);
  await live.off();
  await assert.rejects(once());
  await live.on();
  await once();
  const report = await live.report();
  assert.ok((report.data.links[0]?.drops.outage ?? 0) >= 1);
  report.require("artifacts-lost=0,link.up.drops.outage>=1");
});

test("wrong values are refused with their field", async () => {
  await assert.rejects(link({ delay: "soon" }), (error) => {
    return error instanceof StartError && /invalid value 'soon' for '--delay/.test(error.message);
  });
  await using live = await link();
  await assert.rejects(live.set({ delay: "soon" }), (error) => {
    return error instanceof RefusedError && error.problems[0]?.field === "set.link.delay";
  });
});

test("a missing program is named", async () => {
  const before = process.env.LONGWIRE;
  process.env.LONGWIRE = "/nowhere/longwire";
  try {
    await assert.rejects(link(), /LONGWIRE names \/nowhere\/longwire, which is not a program/);
  } finally {
    process.env.LONGWIRE = before;
  }
});

test("the program and the report agree about requirements", async () => {
  const expressions = [
    "packets_in>=2",
    "packets_in>2",
    "drops.loss=0",
    "drops<1%",
    "down.drops=0",
    "link.up.packets_out=0",
    "artifacts-lost=0,lateness.p99<1s",
    "lateness.max<1ns",
    "lateness-own.p50<1s,pauses.max<1ns",
    "pauses.count>1000000",
  ];
  for (const require of expressions) {
    const live = await link({ require, up: { loss: "100%" } });
    await assert.rejects(live.near.run("ping", ["-c", "2", "-i", "0.01", "-W", "0.1", "far"]));
    const unmet = await live.close().then(
      () => false,
      (error: unknown) => error instanceof FidelityError,
    );
    const report = await live.report();
    assert.equal(report.unmet(require).length > 0, unmet, require);
  }
});

test("an expression that cannot be read is refused", async () => {
  await using live = await link();
  const report = await live.report();
  for (const expression of ["", "drops", "drops<x", "lateness.p99<5", "tea=1", "drops=5%%"]) {
    assert.throws(() => report.unmet(expression), RangeError, expression);
  }
});

test("processes have streams, directory, environment and exit code", async () => {
  await using live = await link();
  const words = ["-c", 'pwd; echo "$TEA"; cat; exit 5'];
  const started = live.far.spawn("sh", words, { cwd: "/usr", env: { ...process.env, TEA: "ok" } });
  started.stdin?.end("input\n");
  const [output, [code]] = await Promise.all([
    text(started.stdout as Readable),
    once(started, "exit") as Promise<[number]>,
  ]);
  assert.deepEqual([output, code], ["/usr\nok\ninput\n", 5]);
});

test("a server in far is awaited, and reached by its name", async () => {
  await using live = await link({ delay: "5ms" });
  await assert.rejects(live.far.listening(8000, 0.1), /nothing listens on port 8000 of far/);
  live.far.spawn("python3", ["-m", "http.server", "8000"], { stdio: "ignore" });
  await live.far.listening(8000);
  const { stdout } = await live.near.run("curl", [
    "-sS",
    "-o/dev/null",
    "-w%{http_code}",
    "far:8000",
  ]);
  assert.equal(stdout, "200");
});

test("a script enters the network with its arguments", async () => {
  await using live = await link();
  const path = await live.near.script("/bin/echo");
  const started = spawn(path, ["a b", "$HOME"]);
  assert.equal(await text(started.stdout), "a b $HOME\n");
});

test("after the end there is the report, and nothing can be changed", async () => {
  const live = await link();
  await live.near.run("ping", ["-c", "1", "far"]);
  await live.close();
  await live.close();
  assert.equal((await live.report()).data.links.length, 2);
  assert.throws(() => live.near.command("true"), EndedError);
  await assert.rejects(live.set({ delay: "1ms" }), EndedError);
});

test("a program that is killed is reported at the end", async () => {
  const live = await link();
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8");
  process.kill(Number(children.trim()), "SIGKILL");
  await assert.rejects(live.close(), EndedError);
});
