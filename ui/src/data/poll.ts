import { ApiError, type Client } from '../api/client';
import type { Timers } from './timers';

/** Polls a document; each request follows `every_ms` after the previous response. */
export class Poll {
  private readonly abort = new AbortController();
  private stopTimer: () => void = () => {};
  private stopped = false;

  constructor(
    private readonly client: Client,
    private readonly path: string,
    private readonly every_ms: number,
    private readonly timers: Timers,
    private readonly onValue: (value: unknown) => void,
    private readonly onError: (error: ApiError) => void,
  ) {
    void this.ask();
  }

  stop(): void {
    this.stopped = true;
    this.stopTimer();
    this.abort.abort();
  }

  private async ask(): Promise<void> {
    let wait_ms = this.every_ms;
    try {
      const value = await this.client.json<unknown>(this.path, { signal: this.abort.signal });
      if (this.stopped) return;
      this.onValue(value);
    } catch (error) {
      if (this.stopped) return;
      if (!(error instanceof ApiError)) throw error;
      if (error.retryAfter_s) wait_ms = Math.max(wait_ms, error.retryAfter_s * 1000);
      this.onError(error);
    }
    if (this.every_ms > 0 && !this.stopped) {
      this.stopTimer = this.timers.after(wait_ms, () => void this.ask());
    }
  }
}
