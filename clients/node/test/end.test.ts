import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const HOLDER = fileURLToPath(new URL("holder.js", import.meta.url));

interface Held {
  directory: string;
  networks: string[];
  hasUserNamespace: boolean;
}

/** Runs the program that holds a link, and returns its output. */
async function hold(ending: string, ...before: string[]): Promise<Held> {
  const [file, ...words] = [...before, process.execPath, HOLDER, ending];
  const holder = spawn(file, words, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => holder.on("exit", resolve));
  let held: Held | undefined;
  for await (const line of createInterface(holder.stdout)) {
    held = JSON.parse(line) as Held;
  }
  await ended;
  assert.ok(held !== undefined, "the holder has printed nothing");
  return held;
}

/** Returns the network namespaces of all processes. */
function networks(): Set<string> {
  const found = readdirSync("/proc").flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${name}/ns/net`)];
    } catch {
      return [];
    }
  });
  return new Set(found);
}

async function until(holds: () => boolean): Promise<boolean> {
  const end = performance.now() + 15_000;
  while (!holds()) {
    if (performance.now() > end) {
      return false;
    }
    await sleep(50);
  }
  return true;
}

async function assertNothingLeft({ directory, networks: ours }: Held): Promise<void> {
  assert.equal(new Set([...ours, readlinkSync("/proc/self/ns/net")]).size, 3);
  assert.ok(await until(() => ours.every((network) => !networks().has(network))));
  assert.ok(await until(() => !existsSync(directory)), `${directory} is left`);
}

for (const ending of ["close", "no close", "exit", "throw", "SIGTERM", "SIGINT", "SIGKILL"]) {
  test(`an end of Node leaves nothing behind: ${ending}`, async () => {
    await assertNothingLeft(await hold(ending));
  });
}

test("an ordinary user needs no root", async () => {
  const user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];
  const held = await hold("SIGKILL", ...user);
  assert.ok(held.hasUserNamespace);
  await assertNothingLeft(held);
});
