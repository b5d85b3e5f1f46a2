import { describe, expect, test } from 'vitest';
import { Client } from '../../src/api/client';
import { Hub } from '../../src/data/hub';
import type { Timers } from '../../src/data/timers';
import type { Status, Update } from '../../src/data/topics';
import { columns } from './samples';

/** A clock that advances only on request. */
class FakeTimers implements Timers {
  time = 0;
  private tasks: { at: number; action: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(delay_ms: number, action: () => void): () => void {
    const task = { at: this.time + delay_ms, action };
    this.tasks.push(task);
    return () => {
      this.tasks = this.tasks.filter((each) => each !== task);
    };
  }

  get pending(): number {
    return this.tasks.length;
  }

  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const next = this.tasks.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.time = next.at;
      this.tasks = this.tasks.filter((each) => each !== next);
      next.action();
      await settle();
    }
    this.time = end;
  }
}

/** Runs pending promise callbacks. */
async function settle(): Promise<void> {
  for (let round = 0; round < 30; round += 1) await Promise.resolve();
}

/** A mock run that counts requests and keeps its streams open. */
class FakeRun {
  up = true;
  refuse: number | null = null;
  /** A direction missing from the run. */
  unknown: string | null = null;
  readonly paths: string[] = [];
  readonly streams: { path: string; send: (text: string) => void; close: () => void }[] = [];

  fetch = async (path: string, init?: RequestInit): Promise<Response> => {
    this.paths.push(path);
    if (!this.up) throw new TypeError('refused');
    if (this.refuse) return new Response('{"error":"no","problems":[]}', { status: this.refuse });
    if (this.unknown && path.includes(this.unknown)) {
      return new Response('{"error":"no such direction","problems":[]}', { status: 404 });
    }
    if (!path.includes('stream')) return new Response(JSON.stringify({ path }));
    return new Response(this.body(path, init?.signal ?? null));
  };

  private body(path: string, signal: AbortSignal | null): ReadableStream<Uint8Array> {
    return new ReadableStream({
      start: (controller) => {
        const stream = {
          path,
          send: (text: string) => controller.enqueue(new TextEncoder().encode(text)),
          close: () => {
            this.streams.splice(this.streams.indexOf(stream), 1);
            controller.close();
          },
        };
        this.streams.push(stream);
        signal?.addEventListener('abort', () => {
          const at = this.streams.indexOf(stream);
          if (at < 0) return;
          this.streams.splice(at, 1);
          controller.error(new DOMException('aborted', 'AbortError'));
        });
      },
    });
  }

  kill(): void {
    this.up = false;
    for (const stream of [...this.streams]) stream.close();
  }

  stream(part: string) {
    const found = this.streams.filter(({ path }) => path.includes(part));
    expect(found.length, `streams of ${part}`).toBe(1);
    return found[0] as (typeof this.streams)[number];
  }
}

async function live() {
  const timers = new FakeTimers();
  const run = new FakeRun();
  const hub = new Hub(timers, () => 1);
  const statuses: Status[] = [];
  hub.subscribe({ kind: 'status' }, (update) => {
    if (update.kind === 'status') statuses.push(update.status);
  });
  hub.connect(new Client(run.fetch, 'token'));
  await timers.pass(0);
  return { timers, run, hub, statuses, phase: () => statuses.at(-1)?.phase };
}

const event = (value: unknown, name?: string) =>
  `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(value)}\n\n`;
const history = (direction: string) => ({ kind: 'history', direction }) as const;

describe('shared connection of tabs', () => {
  test('opens one stream, sends no other request, and is live', async () => {
    const { timers, run, phase } = await live();
    await timers.pass(5000);
    expect(phase()).toBe('live');
    expect(run.paths).toEqual(['/v1/stats/stream?every=1s']);
  });

  test('polls a document once for all subscribers, until the last one leaves', async () => {
    const { timers, run, hub } = await live();
    const seen: Update[] = [];
    const topic = { kind: 'document', path: '/v1/fidelity', every_ms: 1000 } as const;
    const first = hub.subscribe(topic, (update) => seen.push(update));
    const second = hub.subscribe(topic, (update) => seen.push(update));
    await timers.pass(3500);
    const asked = run.paths.filter((path) => path === '/v1/fidelity').length;
    expect(asked).toBe(4);
    expect(seen.length).toBe(8);
    first();
    second();
    await timers.pass(10_000);
    expect(run.paths.filter((path) => path === '/v1/fidelity').length).toBe(asked);
  });

  test('streams all histories together, and forwards only new samples', async () => {
    const { timers, run, hub } = await live();
    const a: Update[] = [];
    const b: Update[] = [];
    hub.subscribe(history('l.up'), (update) => a.push(update));
    hub.subscribe(history('l.down'), (update) => b.push(update));
    await timers.pass(100);
    const stream = run.stream('history');
    expect(stream.path).toBe('/v1/history/stream?directions=l.up,l.down&every=500ms');
    stream.send(event({ 'l.up': columns(0, 100), 'l.down': columns(0, 100) }));
    await timers.pass(0);
    stream.send(event({ 'l.up': columns(100, 5), 'l.down': columns(100, 5) }));
    await timers.pass(0);
    expect(a.map((update) => update.kind === 'history' && update.replaces)).toEqual([true, false]);
    expect(b.length).toBe(2);
    // A later tab gets the whole history immediately, without another stream.
    const late: Update[] = [];
    hub.subscribe(history('l.up'), (update) => late.push(update));
    expect(late.length).toBe(1);
    expect(late[0]?.kind === 'history' && late[0].columns.elapsed_s.length).toBe(105);
    expect(run.paths.filter((path) => path.includes('history')).length).toBe(1);
  });

  test('drops an unviewed history after a while', async () => {
    const { timers, run, hub } = await live();
    const end = hub.subscribe(history('l.up'), () => {});
    await timers.pass(100);
    end();
    await timers.pass(9000);
    run.stream('history');
    await timers.pass(2000);
    expect(run.streams.filter(({ path }) => path.includes('history'))).toEqual([]);
  });

  test('viewing a thousand links leaves nothing behind', async () => {
    const { timers, run, hub } = await live();
    const before = timers.pending;
    for (let at = 0; at < 1000; at += 1) {
      const end = hub.subscribe(history(`l${at}.up`), () => {});
      const poll = hub.subscribe(
        { kind: 'document', path: `/v1/links/l${at}`, every_ms: 1000 },
        () => {},
      );
      await timers.pass(50);
      expect(run.streams.length).toBeLessThanOrEqual(2);
      end();
      poll();
    }
    await timers.pass(20_000);
    expect(run.streams.length).toBe(1);
    expect(timers.pending).toBe(before);
    // The maximum number of directions in a stream, and no more.
    for (const path of run.paths) expect(path.split(',').length).toBeLessThanOrEqual(8);
  });

  test('reports a lost connection, backs off between retries, and recovers', async () => {
    const { timers, run, hub, statuses, phase } = await live();
    const seen: Update[] = [];
    hub.subscribe({ kind: 'document', path: '/v1/changes', every_ms: 1000 }, (u) => seen.push(u));
    hub.subscribe(history('l.up'), (update) => seen.push(update));
    await timers.pass(1500);
    run.kill();
    await timers.pass(0);
    expect(phase()).toBe('lost');
    const since = statuses.at(-1)?.since_ms;
    const asked = run.paths.length;
    await timers.pass(60_000);
    const tries = run.paths.slice(asked);
    // Only the stream of totals is retried, after 0.5, 1, 2, 4, 8, 10, 10 … seconds.
    expect(new Set(tries)).toEqual(new Set(['/v1/stats/stream?every=1s']));
    expect(tries.length).toBe(9);
    expect(statuses.at(-1)?.since_ms).toBe(since);
    run.up = true;
    seen.length = 0;
    await timers.pass(10_000);
    expect(phase()).toBe('live');
    run.stream('history').send(event({ 'l.up': columns(0, 10) }));
    await timers.pass(0);
    expect(seen.some((update) => update.kind === 'document')).toBe(true);
    expect(seen.some((update) => update.kind === 'history' && update.replaces)).toBe(true);
  });

  test('treats a silent stream as lost', async () => {
    const { timers, phase } = await live();
    await timers.pass(10_100);
    expect(phase()).toBe('lost');
  });

  test('a heartbeat keeps a stream alive', async () => {
    const { timers, run, phase } = await live();
    for (let at = 0; at < 10; at += 1) {
      await timers.pass(5000);
      run.stream('stats').send(': heartbeat\n\n');
    }
    await timers.pass(0);
    expect(phase()).toBe('live');
  });

  test('reports the end of the run, and sends no more requests', async () => {
    const { timers, run, hub, phase } = await live();
    hub.subscribe({ kind: 'document', path: '/v1/changes', every_ms: 1000 }, () => {});
    await timers.pass(100);
    run.stream('stats').send(event({ reason: 'the run has ended' }, 'end'));
    await timers.pass(0);
    expect(phase()).toBe('ended');
    run.kill();
    const asked = run.paths.length;
    await timers.pass(60_000);
    expect(phase()).toBe('ended');
    expect(run.paths.length).toBe(asked);
    expect(timers.pending).toBe(0);
  });

  test('keeps responses for views opened after the end of the run', async () => {
    const { timers, run, hub, phase } = await live();
    const leave = [
      hub.subscribe({ kind: 'document', path: '/v1', every_ms: 1000 }, () => {}),
      hub.subscribe(history('l.up'), () => {}),
    ];
    await timers.pass(100);
    run.stream('history').send(event({ 'l.up': columns(0, 3) }));
    await timers.pass(0);
    for (const end of leave) end();
    await timers.pass(1000);
    // While the run is active, an earlier response is not shown as current.
    const early: Update[] = [];
    run.refuse = 404;
    hub.subscribe({ kind: 'document', path: '/v1', every_ms: 1000 }, (u) => early.push(u))();
    run.refuse = null;
    expect(early).toEqual([]);
    run.stream('stats').send(event({ reason: 'the run has ended' }, 'end'));
    await timers.pass(60_000);
    expect(phase()).toBe('ended');
    const seen: Update[] = [];
    hub.subscribe({ kind: 'document', path: '/v1', every_ms: 1000 }, (u) => seen.push(u));
    hub.subscribe(history('l.up'), (u) => seen.push(u));
    hub.subscribe(history('other.up'), (u) => seen.push(u));
    await timers.pass(60_000);
    expect(seen.map(({ kind }) => kind)).toEqual(['document', 'history']);
    expect(timers.pending).toBe(0);
  });

  test('a refused token is retried only on request', async () => {
    const { timers, run, hub, phase } = await live();
    run.refuse = 401;
    run.stream('stats').close();
    await timers.pass(600);
    expect(phase()).toBe('denied');
    const asked = run.paths.length;
    await timers.pass(60_000);
    expect(run.paths.length).toBe(asked);
    run.refuse = null;
    hub.retry();
    await timers.pass(0);
    expect(phase()).toBe('live');
  });

  test('a refused direction does not stop the others', async () => {
    const { timers, run, hub } = await live();
    const good: Update[] = [];
    const bad: Update[] = [];
    run.unknown = 'gone.up';
    hub.subscribe(history('l.up'), (update) => good.push(update));
    hub.subscribe(history('gone.up'), (update) => bad.push(update));
    await timers.pass(200);
    expect(bad.map(({ kind }) => kind)).toEqual(['failure']);
    const stream = run.stream('history');
    expect(stream.path).toContain('directions=l.up&');
    stream.send(event({ 'l.up': columns(0, 3) }));
    await timers.pass(0);
    expect(good.map(({ kind }) => kind)).toEqual(['history']);
  });

  test('forwards the refusal of a document with its status', async () => {
    const { timers, run, hub } = await live();
    const seen: Update[] = [];
    run.refuse = 404;
    hub.subscribe({ kind: 'document', path: '/v1/links/none', every_ms: 1000 }, (u) =>
      seen.push(u),
    );
    await timers.pass(0);
    expect(seen).toEqual([
      { kind: 'failure', failure: { status: 404, message: 'no', problems: [] } },
    ]);
  });
});
