import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("the example of the README runs", () => {
  const [, code] = readFileSync("README.md", "utf8").split(/```(?:js)?\n/);
  execFileSync(process.execPath, ["--input-type=module", "--eval", code ?? ""]);
});
