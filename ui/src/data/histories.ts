import { ApiError, type Client } from '../api/client';
import type { ServerEvent } from '../api/sse';
import type { HistoryColumns } from '../api/types';
import { History } from './history';
import { Stream } from './stream';
import type { Timers } from './timers';
import { failureOf, type Update } from './topics';

interface Held {
  history: History;
  wanted: boolean;
  /** Whether the stream's next event contains the whole history, not only new samples. */
  fresh: boolean;
  stopRelease: () => void;
}

/** A view's requests arrive in sequence; the stream is opened once for all of them. */
const gatherMs = 30;
/** Time that an unviewed direction stays in the stream, because users go back and forth. */
const keepMs = 10_000;
/** Maximum number of directions in one stream of the run. */
const mostDirections = 8;

/** A single stream with the histories of all viewed directions. */
export class Histories {
  private readonly held = new Map<string, Held>();
  private client: Client | null = null;
  private stream: Stream | null = null;
  private stopGather: () => void = () => {};
  /** Whether the run has ended, so that histories are complete. */
  private ended = false;

  constructor(
    private readonly timers: Timers,
    private readonly publish: (direction: string, update: Update) => void,
    private readonly onEnd: () => void,
  ) {}

  want(direction: string): void {
    const held = this.held.get(direction);
    if (held) {
      held.stopRelease();
      held.wanted = true;
      if (held.history.length > 0) {
        const update = this.snapshot(direction);
        // Publish only after the subscriber has been registered.
        if (update) this.timers.after(0, () => this.publish(direction, update));
      }
      return;
    }
    if (this.ended) return;
    this.dropSurplus();
    if (this.held.size >= mostDirections) {
      const message = `${mostDirections} directions are shown in other tabs, the maximum; close one of them`;
      this.timers.after(0, () =>
        this.publish(direction, {
          kind: 'failure',
          failure: { status: 503, message, problems: [] },
        }),
      );
      return;
    }
    this.held.set(direction, {
      history: new History(),
      wanted: true,
      fresh: true,
      stopRelease: () => {},
    });
    this.reopenSoon();
  }

  release(direction: string): void {
    const held = this.held.get(direction);
    if (!held) return;
    held.wanted = false;
    held.stopRelease();
    if (this.ended) return;
    held.stopRelease = this.timers.after(keepMs, () => {
      this.held.delete(direction);
      this.reopenSoon();
    });
  }

  snapshot(direction: string): Update | null {
    const history = this.held.get(direction)?.history;
    if (!history || history.length === 0) return null;
    return { kind: 'history', columns: history.columns(), replaces: true };
  }

  resume(client: Client): void {
    this.client = client;
    this.ended = false;
    this.open();
  }

  suspend(): void {
    this.client = null;
    this.stopGather();
    this.stream?.close();
    this.stream = null;
  }

  /** Marks the end of the run; histories are kept. */
  end(): void {
    this.ended = true;
    for (const held of this.held.values()) held.stopRelease();
  }

  private dropSurplus(): void {
    for (const [direction, held] of this.held) {
      if (this.held.size < mostDirections) return;
      if (held.wanted) continue;
      held.stopRelease();
      this.held.delete(direction);
    }
  }

  private reopenSoon(): void {
    this.stopGather();
    this.stopGather = this.timers.after(gatherMs, () => this.open());
  }

  private open(): void {
    this.stream?.close();
    this.stream = null;
    if (!this.client || this.held.size === 0) return;
    for (const held of this.held.values()) held.fresh = true;
    const names = [...this.held.keys()].map(encodeURIComponent).join(',');
    const path = `/v1/history/stream?directions=${names}&every=500ms`;
    this.stream = new Stream(this.client, path, this.timers, {
      onOpen: () => {},
      onEvent: (event) => this.received(event),
      onClose: (error) => {
        this.stream = null;
        if (error.status >= 400 && error.status < 500) {
          void this.sift(error);
          return;
        }
        // The stream of totals decides whether the connection is lost.
        this.stopGather = this.timers.after(1000, () => {
          if (!this.stream) this.open();
        });
      },
    });
  }

  /**
   * Removes the directions that the run refuses to stream, so that a removed link
   * in one tab does not stop the charts of other tabs.
   */
  private async sift(refusal: ApiError): Promise<void> {
    const client = this.client;
    const before = this.held.size;
    for (const direction of [...this.held.keys()]) {
      const error = before === 1 ? refusal : client && (await refusalOf(client, direction));
      if (!error) continue;
      this.held.get(direction)?.stopRelease();
      this.held.delete(direction);
      this.publish(direction, { kind: 'failure', failure: failureOf(error) });
    }
    if (this.held.size > 0 && this.held.size < before && !this.stream) this.reopenSoon();
  }

  private received(event: ServerEvent): void {
    if (event.event === 'end') {
      this.onEnd();
      return;
    }
    if (event.event !== 'message') return;
    const update = JSON.parse(event.data) as Record<string, HistoryColumns>;
    for (const [direction, columns] of Object.entries(update)) {
      const held = this.held.get(direction);
      if (!held) continue;
      const replaces = held.fresh;
      held.fresh = false;
      if (replaces) held.history.replace(columns);
      else held.history.append(columns);
      this.publish(direction, { kind: 'history', columns, replaces });
    }
  }
}

/** Returns the run's error for a direction's history, or null if the run accepts it. */
async function refusalOf(client: Client, direction: string): Promise<ApiError | null> {
  try {
    // `since` is in the far future, so the response contains no samples.
    await client.open(`/v1/history/${encodeURIComponent(direction)}?since=1000000s`);
    return null;
  } catch (error) {
    return error instanceof ApiError && error.status >= 400 ? error : null;
  }
}
