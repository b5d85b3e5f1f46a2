import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import createClient, { type Client } from "openapi-fetch";
import * as undici from "undici";
import type { components, paths } from "./api.js";
import { EndedError, FidelityError, LongwireError, RefusedError, StartError } from "./errors.js";
import { Network } from "./network.js";
import { type DirectionReport, Report, type ReportData } from "./report.js";

type Schemas = components["schemas"];

/** Options of a link, as on the command line: `{ delay: "20ms", rate: "10mbit" }`. */
export type Options = Schemas["Options"];

/** Initial options of a link. */
export interface LinkOptions extends Options {
  /** Options of the direction from near to far. */
  up?: Options;
  /** Options of the direction from far to near. */
  down?: Options;
  /** Name of a preset, such as `lte`. */
  preset?: string;
  seed?: number;
  /** Requirements on the run; if one is not met, {@link Link.close} throws {@link FidelityError}. */
  require?: string;
  /** Additional command-line arguments of `longwire exec`. */
  args?: readonly string[];
}

/** Maximum length of a parent directory in bytes, since a Unix socket path has at most 107. */
const DIRECTORY_MAX = 60;

/** The program's exit code for an unmet requirement. */
const UNMET = 3;

/** End timeout; the program waits half a second for its processes. */
const END_MS = 20_000;

/**
 * The command in near. A line on stdin requests an orderly end. The end of the stream without a
 * line means that the Node process died and cannot remove its directory.
 */
const NEAR = 'echo "near $$" >&3; exec 3>&-; read -r line || exec rm -rf -- "$0"';

const FAR = 'echo "far $$" >&3; exec sleep infinity 3>&-';

/**
 * Starts a link between two networks, near and far, with `longwire exec`. The program is found
 * through the environment variable LONGWIRE or in PATH.
 *
 * The link ends with {@link Link.close} or `await using`, or when this process exits or is killed.
 * All processes in its networks end with it.
 *
 * @throws StartError if an option is invalid, or the system forbids user namespaces
 */
export async function link(options: LinkOptions = {}): Promise<Link> {
  const directory = mkdtempSync(join(parentDirectory(), "longwire-node-"));
  const file = (name: string) => join(directory, name);
  const stderr = openSync(file("stderr"), "w");
  const words = [
    ...["exec", "--quiet", ...commandWords(options)],
    ...["--control", file("control.sock"), "--report", file("report.json")],
    ...["--peer-wait", "0s", "--peer", FAR, "--", "sh", "-c", NEAR, directory],
  ];
  // Use a separate session, so that Ctrl-C reaches only this process, which then ends the link.
  const program = spawn(process.env.LONGWIRE || "longwire", words, {
    detached: true,
    stdio: ["pipe", stderr, stderr, "pipe"],
  });
  closeSync(stderr);
  try {
    const processes = await started(program);
    return new Link(program, directory, processes);
  } catch (error) {
    const reason = error instanceof LongwireError ? messages(directory) : missing(error);
    program.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
    throw new StartError(reason || "longwire ended before the link started");
  }
}

/** Returns the message for a program that cannot be started. */
function missing(error: unknown): string {
  const named = process.env.LONGWIRE;
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
    return String(error);
  }
  return named
    ? `the environment variable LONGWIRE names ${named}, which is not a program: set it to the path of longwire, or remove it`
    : "the program longwire is not on PATH; the environment variable LONGWIRE may name it";
}

/** Waits until a process runs in each network, and returns the process IDs. */
async function started(program: ChildProcess): Promise<Record<"near" | "far", number>> {
  const stream: AsyncIterable<string> = (program.stdio[3] as Readable).setEncoding("utf8");
  const failed = once(program, "exit").then(() => {
    throw new StartError();
  });
  const read = async () => {
    let text = "";
    for await (const chunk of stream) {
      text += chunk;
      const [near, far] = [/^near (\d+)\n/m.exec(text), /^far (\d+)\n/m.exec(text)];
      if (near !== null && far !== null) {
        return { near: Number(near[1]), far: Number(far[1]) };
      }
    }
    return failed;
  };
  return Promise.race([read(), failed]);
}

/** A running link. */
export class Link {
  readonly near: Network;
  readonly far: Network;
  /** The whole control API, typed: `link.client.GET("/v1/ports")`. */
  readonly client: Client<paths>;
  readonly #agent: undici.Agent;
  readonly #exit: Promise<[number | null, string | null]>;
  #closing: Promise<void> | undefined;
  #report: Report | undefined;

  /** @internal */
  constructor(
    private readonly program: ChildProcess,
    private readonly directory: string,
    processes: Record<"near" | "far", number>,
  ) {
    this.near = new Network("near", "10.77.0.1", "fd77:4c57::1", processes.near, directory);
    this.far = new Network("far", "10.77.0.2", "fd77:4c57::2", processes.far, directory);
    this.#exit = once(program, "exit") as Promise<[number | null, string | null]>;
    // An open link does not keep the Node process alive.
    program.unref();
    (program.stdin as Writable & { unref(): void }).unref();
    this.#agent = new undici.Agent({ connect: { socketPath: join(directory, "control.sock") } });
    this.client = createClient<paths>({
      baseUrl: "http://localhost",
      // Node's fetch is a version of undici whose types differ from those of the package.
      Request: undici.Request as unknown as typeof Request,
      fetch: (request) =>
        undici.fetch(request as unknown as undici.Request, {
          dispatcher: this.#agent,
        }) as unknown as Promise<Response>,
    });
  }

  /**
   * Changes options of both directions or of one, between two frames. Other options are unchanged.
   *
   * @throws RefusedError if a value is invalid; nothing is changed
   */
  async set(options: Options, direction?: "up" | "down"): Promise<void> {
    const name = direction === undefined ? "link" : `link.${direction}`;
    await this.#ask(
      this.client.PATCH("/v1/links/{name}", { params: { path: { name } }, body: options }),
    );
  }

  /** Drops arriving and queued frames until {@link on}. */
  async off(): Promise<void> {
    await this.change({ off: ["link"] });
  }

  /** Holds arriving frames, up to the queue limit, until {@link on}. */
  async pause(): Promise<void> {
    await this.change({ pause: ["link"] });
  }

  /** Ends {@link off} and {@link pause}. */
  async on(): Promise<void> {
    await this.change({ on: ["link"] });
  }

  /**
   * Applies a change, immediate or scheduled: `{ in: "2s", set: { link: { delay: "80ms" } } }`.
   *
   * @throws RefusedError if the change is invalid; nothing is changed
   */
  async change(change: Schemas["Change"]): Promise<Schemas["Changed"]> {
    return this.#ask(this.client.POST("/v1/changes", { body: change }));
  }

  /** Returns the counters so far, summed over both directions. */
  async stats(): Promise<Schemas["Stats"]> {
    return this.#ask(this.client.GET("/v1/stats"));
  }

  /** Returns the report: so far while the link runs, complete afterwards. */
  async report(): Promise<Report> {
    if (this.#report !== undefined) {
      return this.#report;
    }
    const [data, { links }] = await Promise.all([
      this.#ask(this.client.GET("/v1/report")),
      this.#ask(this.client.GET("/v1/links")),
    ]);
    const directions = links.flatMap(({ name, up, down }): DirectionReport[] => [
      { ...up, name: `${name}.up` },
      ...(down === undefined ? [] : [{ ...down, name: `${name}.down` }]),
    ]);
    // In its response types, openapi-fetch turns tuples into arrays.
    const report = data as unknown as Schemas["Report"];
    return new Report({ ...report, links: directions });
  }

  /**
   * Ends the link and the processes in its networks. Idempotent.
   *
   * @throws FidelityError if the option `require` is not met
   * @throws EndedError if the link had ended early
   */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    this.near.end();
    this.far.end();
    this.program.ref();
    const timer = setTimeout(() => this.program.kill("SIGKILL"), END_MS);
    // Fails if the program has ended.
    this.program.stdin?.on("error", () => {}).end("end\n");
    const [code, signal] = await this.#exit;
    clearTimeout(timer);
    await this.#agent.destroy();
    const text = messages(this.directory);
    this.#report = readReport(join(this.directory, "report.json"));
    rmSync(this.directory, { recursive: true, force: true });
    if (code === UNMET) {
      throw new FidelityError(text);
    }
    if (code !== 0) {
      throw new EndedError(text || `longwire ended with ${signal ?? `code ${code}`}`);
    }
  }

  /** Returns the data of a response. */
  async #ask<Data>(
    asked: Promise<{ data?: Data; error?: Schemas["Error"]; response: Response }>,
  ): Promise<Data> {
    let answer: Awaited<typeof asked>;
    try {
      answer = await asked;
    } catch (error) {
      throw new EndedError("the link has ended", { cause: error });
    }
    if (answer.data !== undefined) {
      return answer.data;
    }
    throw answer.error === undefined
      ? new LongwireError(`status ${answer.response.status}`)
      : new RefusedError(answer.error);
  }
}

/** Converts options to command-line arguments. */
function commandWords({ up, down, args, ...options }: LinkOptions): string[] {
  const words = (prefix: string, chosen: object) =>
    Object.entries(chosen)
      .filter(([, value]) => value !== undefined)
      .flatMap(([name, value]) => [value].flat().map((item) => `--${prefix}${name}=${item}`));
  const both = words("", options);
  return [...both, ...words("up-", up ?? {}), ...words("down-", down ?? {}), ...(args ?? [])];
}

/** Returns the parent of private directories. */
function parentDirectory(): string {
  return Buffer.byteLength(tmpdir()) <= DIRECTORY_MAX ? tmpdir() : "/tmp";
}

/** Returns the program's output. */
function messages(directory: string): string {
  const lines = readFileSync(join(directory, "stderr"), "utf8").split("\n");
  const kept = lines.filter((line) => !/^(the peer does not|For more information, try)/.test(line));
  return kept
    .join("\n")
    .trim()
    .replace(/^error: /, "");
}

/** Reads a report, which is missing if the program was killed. */
function readReport(path: string): Report | undefined {
  try {
    return new Report(JSON.parse(readFileSync(path, "utf8")) as ReportData);
  } catch {
    return undefined;
  }
}
