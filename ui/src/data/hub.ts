import { backoffMs } from '../api/backoff';
import type { ApiError, Client } from '../api/client';
import type { ServerEvent } from '../api/sse';
import type { StatsEvent } from '../api/types';
import { Histories } from './histories';
import { Poll } from './poll';
import { Stream } from './stream';
import type { Timers } from './timers';
import {
  failureOf,
  type Listener,
  type Source,
  type Status,
  type Topic,
  topicKey,
  type Update,
} from './topics';

interface Entry {
  topic: Topic;
  listeners: Set<Listener>;
  poll: Poll | null;
  /** Last update, for later subscribers; for a document, only while it is polled. */
  last: Update | null;
}

/** Number of documents kept after their last subscriber, for the time after the run. */
const mostKept = 32;

/**
 * The connection to the run. A stream of totals is always open and shows whether
 * the run is alive or has ended. Documents are polled and histories streamed only
 * while they have subscribers.
 */
export class Hub implements Source {
  private client: Client | null = null;
  private readonly entries = new Map<string, Entry>();
  /** The last responses without subscribers, newest last. */
  private readonly kept = new Map<string, Update>();
  private base: Stream | null = null;
  private stopRetry: () => void = () => {};
  private status: Status;
  private readonly histories: Histories;

  constructor(
    private readonly timers: Timers,
    private readonly random: () => number = Math.random,
  ) {
    this.status = this.statusOf('connecting', '');
    this.histories = new Histories(
      timers,
      (direction, update) => this.publish({ kind: 'history', direction }, update),
      () => this.end(),
    );
  }

  /** Connects, or reconnects with another token. */
  connect(client: Client): void {
    this.client = client;
    this.stop();
    this.kept.clear();
    this.setStatus('connecting', '');
    this.openBase();
  }

  retry(): void {
    if (this.status.phase !== 'lost' && this.status.phase !== 'denied') return;
    this.stopRetry();
    this.openBase();
  }

  subscribe(topic: Topic, listener: Listener): () => void {
    const key = topicKey(topic);
    let entry = this.entries.get(key);
    if (!entry) {
      // Kept responses are final once the run has ended; before, they are stale.
      const last = (this.status.phase === 'ended' && this.kept.get(key)) || null;
      entry = { topic, listeners: new Set(), poll: null, last };
      this.entries.set(key, entry);
      this.start(entry);
    } else if (topic.kind === 'history') {
      const update = this.histories.snapshot(topic.direction);
      if (update) listener(update);
    }
    entry.listeners.add(listener);
    if (topic.kind === 'status') listener({ kind: 'status', status: this.status });
    else if (entry.last) listener(entry.last);
    const held = entry;
    return () => {
      held.listeners.delete(listener);
      if (held.listeners.size === 0 && this.entries.get(key) === held) this.drop(key, held);
    };
  }

  private drop(key: string, entry: Entry): void {
    entry.poll?.stop();
    if (entry.topic.kind === 'history') this.histories.release(entry.topic.direction);
    this.entries.delete(key);
    if (entry.last) this.keep(key, entry.last);
  }

  private keep(key: string, last: Update): void {
    this.kept.delete(key);
    this.kept.set(key, last);
    const oldest = this.kept.keys().next().value;
    if (this.kept.size > mostKept && oldest !== undefined) this.kept.delete(oldest);
  }

  private start(entry: Entry): void {
    const { topic } = entry;
    if (topic.kind === 'history') this.histories.want(topic.direction);
    if (topic.kind !== 'document' || !this.client || this.status.phase !== 'live') return;
    entry.poll?.stop();
    entry.poll = new Poll(
      this.client,
      topic.path,
      topic.every_ms,
      this.timers,
      (value) => this.publish(topic, { kind: 'document', value }),
      (error) => this.pollFailed(topic, error),
    );
  }

  private pollFailed(topic: Topic, error: ApiError): void {
    // Without a response, the stream of totals fails too and reports the failure once.
    if (error.status === 0) return;
    this.publish(topic, { kind: 'failure', failure: failureOf(error) });
  }

  private publish(topic: Topic, update: Update): void {
    const entry = this.entries.get(topicKey(topic));
    if (!entry) return;
    if (topic.kind !== 'history') entry.last = update;
    for (const listener of [...entry.listeners]) listener(update);
  }

  private openBase(): void {
    if (!this.client) return;
    this.base?.close();
    this.base = new Stream(this.client, '/v1/stats/stream?every=1s', this.timers, {
      onOpen: () => this.opened(),
      onEvent: (event) => this.totals(event),
      onClose: (error) => this.lost(error),
    });
  }

  private opened(): void {
    this.setStatus('live', '');
    for (const entry of this.entries.values()) this.start(entry);
    if (this.client) this.histories.resume(this.client);
  }

  private totals(event: ServerEvent): void {
    if (event.event === 'end') this.end();
    else if (event.event === 'message') {
      const value = JSON.parse(event.data) as StatsEvent;
      this.publish({ kind: 'totals' }, { kind: 'totals', event: value });
    }
  }

  private end(): void {
    this.stop();
    this.histories.end();
    this.setStatus('ended', '');
  }

  private lost(error: ApiError): void {
    if (this.status.phase === 'ended') return;
    const failures = this.status.failures + 1;
    this.stop();
    if (error.status === 401 || error.status === 403) {
      this.setStatus('denied', error.message);
      return;
    }
    const wait_ms = Math.max(backoffMs(failures, this.random), (error.retryAfter_s ?? 0) * 1000);
    this.setStatus('lost', error.message, failures, this.timers.now() + wait_ms);
    this.stopRetry = this.timers.after(wait_ms, () => this.openBase());
  }

  private stop(): void {
    this.stopRetry();
    this.base?.close();
    this.base = null;
    this.histories.suspend();
    for (const entry of this.entries.values()) {
      entry.poll?.stop();
      entry.poll = null;
    }
  }

  private setStatus(
    phase: Status['phase'],
    reason: string,
    failures = 0,
    retryAt_ms: number | null = null,
  ): void {
    // Report the time of the first failure, not of the last attempt.
    const since_ms =
      phase === this.status.phase && phase === 'lost' ? this.status.since_ms : this.timers.now();
    this.status = { phase, since_ms, failures, retryAt_ms, reason };
    this.publish({ kind: 'status' }, { kind: 'status', status: this.status });
  }

  private statusOf(phase: Status['phase'], reason: string): Status {
    return { phase, since_ms: this.timers.now(), failures: 0, retryAt_ms: null, reason };
  }
}
