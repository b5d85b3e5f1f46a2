/**
 * The program of `end.test.ts`: starts a link with processes in it, prints their networks, and
 * ends in the way given by its argument.
 */
import { readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { link } from "longwire";

const live = await link({ delay: "1ms" });
live.near.spawn("sleep", ["1000"], { stdio: "ignore" }).unref();
live.far.spawn("sh", ["-c", "setsid sleep 1000 & wait"], { stdio: "ignore" }).unref();
const networks = [];
for (const network of [live.near, live.far]) {
  networks.push((await network.run("readlink", ["/proc/self/ns/net"])).stdout.trim());
}
const directory = dirname(await live.near.script("true"));
const { stdout: user } = await live.near.run("readlink", ["/proc/self/ns/user"]);
const hasUserNamespace = user.trim() !== readlinkSync("/proc/self/ns/user");
console.log(JSON.stringify({ directory, networks, hasUserNamespace }));

const endings: Record<string, () => unknown> = {
  close: () => live.close(),
  "no close": () => {},
  exit: () => process.exit(3),
  throw: () => {
    throw new Error("thrown by the test");
  },
  SIGTERM: () => process.kill(process.pid, "SIGTERM"),
  SIGINT: () => process.kill(process.pid, "SIGINT"),
  SIGKILL: () => process.kill(process.pid, "SIGKILL"),
};
await endings[process.argv[2] ?? ""]?.();
