import { type ChildProcess, spawn } from 'node:child_process';
import { CutProxy } from './proxy';

export interface Run {
  /** URL of the page with the write token. */
  url: string;
  /** The same URL through the proxy, which can close connections. */
  cutUrl: string;
  /** URL of the page with the read token. */
  readUrl: string;
  base: string;
  token: string;
  proxy: CutProxy;
  stdout: () => string;
  stderr: () => string;
  ended: Promise<number | null>;
  stop: () => Promise<void>;
  /** Requests the API directly, without the page. */
  ask: <T>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>;
}

export function program(): string {
  const path = process.env['LONGWIRE_PROGRAM'];
  if (!path)
    throw new Error('set LONGWIRE_PROGRAM to the program to test, such as target/release/longwire');
  return path;
}

/** Starts `longwire exec --view` and waits until its page is available. */
export function startRun(options: string[], command: string[]): Promise<Run> {
  return start(['exec', '--view', ...options, '--', ...command]);
}

/** Like {@link startRun}, for `longwire generate`, whose links are those of a replay. */
export function startGenerator(options: string[]): Promise<Run> {
  return start(['generate', '--view', ...options]);
}

async function start(words: string[]): Promise<Run> {
  const child = spawn(program(), words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // On a desktop, the run would open the page in a browser.
    env: { ...process.env, DISPLAY: '', WAYLAND_DISPLAY: '' },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece) => (stdout += piece));
  child.stderr.on('data', (piece) => (stderr += piece));
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const [full, read] = await addresses(() => stderr, ended);
  const [base = '', token = ''] = full.split('/#token=');
  const readToken = read.split('/#token=')[1] ?? '';
  const proxy = new CutProxy(base);
  await proxy.open();
  return {
    url: `${base}/#token=${token}`,
    cutUrl: `${proxy.url}/#token=${token}`,
    readUrl: `${base}/#token=${readToken}`,
    base,
    token,
    proxy,
    stdout: () => stdout,
    stderr: () => stderr,
    ended,
    stop: async () => {
      await stop(child, ended);
      await proxy.cut();
    },
    ask: (path, init) => ask(base, token, path, init),
  };
}

async function addresses(stderr: () => string, ended: Promise<unknown>): Promise<[string, string]> {
  let over = false;
  void ended.then(() => (over = true));
  for (let tries = 0; tries < 300 && !over; tries += 1) {
    const found = [...stderr().matchAll(/view[^\n]*: (http:\/\/\S+#token=\S+)/g)].map(
      (match) => match[1],
    );
    if (found[0] && found[1]) return [found[0], found[1]];
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the run printed no address:\n${stderr()}`);
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timeout = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await ended;
  clearTimeout(timeout);
}

async function ask<T>(
  base: string,
  token: string,
  path: string,
  init: { method?: string; body?: unknown } = {},
): Promise<T> {
  const response = await fetch(`${base}${path}`, {
    method: init.method ?? 'GET',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
