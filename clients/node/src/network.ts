import { type ChildProcess, execFile, type SpawnOptions, spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { EndedError } from "./errors.js";

/** The state of a listening socket in /proc/net/tcp. */
const LISTENING = "0A";

/** Options of {@link Network.run}. */
export interface RunOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Maximum output in bytes; default: 1 MiB. */
  maxBuffer?: number;
  signal?: AbortSignal;
  /** Timeout in milliseconds. */
  timeout?: number;
}

/** A network at one end of a link. The names `near` and `far` resolve in both networks. */
export class Network {
  #ended = false;

  constructor(
    readonly name: "near" | "far",
    readonly address: string,
    readonly address6: string,
    /** A process in this network that lives as long as the link. */
    private readonly pid: number,
    private readonly directory: string,
  ) {}

  /**
   * Returns the command that runs a program in this network, for libraries that start
   * processes. The command execs the program.
   */
  command(file: string, args: readonly string[] = [], cwd = process.cwd()): [string, ...string[]] {
    if (this.#ended) {
      throw new EndedError("the link has ended");
    }
    // The names near and far are in /etc/hosts of the process's root directory.
    const enter = [`--target=${this.pid}`, "--net", "--root", `--wdns=${cwd}`];
    const user = (pid: number | "self") => readlinkSync(`/proc/${pid}/ns/user`);
    // Root's links have no user namespace, and the kernel refuses to enter the current one.
    if (user(this.pid) !== user("self")) {
      enter.push("--user", "--preserve-credentials");
    }
    return ["nsenter", ...enter, "--", file, ...args];
  }

  /** Starts a process in this network, like `spawn` of `node:child_process`. */
  spawn(file: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
    const [enter, ...words] = this.command(file, args, options.cwd?.toString());
    return spawn(enter, words, options);
  }

  /** Runs a command in this network to completion, like `execFile` of `node:child_process`. */
  async run(
    file: string,
    args: readonly string[] = [],
    options: RunOptions = {},
  ): Promise<{ stdout: string; stderr: string }> {
    const [enter, ...words] = this.command(file, args, options.cwd);
    return promisify(execFile)(enter, words, { ...options, encoding: "utf8" });
  }

  /**
   * Writes a script for libraries that take a program's path, and returns its path. The script
   * runs a program in this network with the script's arguments. It is removed with the link.
   */
  async script(file: string): Promise<string> {
    const words = this.command(file).map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const path = join(this.directory, `${this.name}-${file.replaceAll("/", "-")}`);
    await writeFile(path, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
    await chmod(path, 0o700);
    return path;
  }

  /** Waits until a process in this network listens on a TCP port. */
  async listening(port: number, seconds = 30): Promise<void> {
    const end = performance.now() + seconds * 1000;
    while (!(await this.#ports()).has(port)) {
      if (performance.now() > end) {
        throw new Error(`nothing listens on port ${port} of ${this.name} after ${seconds} s`);
      }
      await sleep(20);
    }
  }

  /** Returns the listening TCP ports. */
  async #ports(): Promise<Set<number>> {
    const tables = ["tcp", "tcp6"].map((name) => `/proc/${this.pid}/net/${name}`);
    const texts = await Promise.all(tables.map((path) => readFile(path, "utf8")));
    const rows = texts.flatMap((text) => text.split("\n").map((line) => line.trim().split(/\s+/)));
    const open = rows.filter(([, , , state]) => state === LISTENING);
    return new Set(open.map(([, local]) => Number.parseInt(local?.split(":")[1] ?? "", 16)));
  }

  /** @internal */
  end(): void {
    this.#ended = true;
  }
}
