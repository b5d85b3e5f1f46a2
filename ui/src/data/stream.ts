import { ApiError, type Client } from '../api/client';
import { readEvents, type ServerEvent } from '../api/sse';
import type { Timers } from './timers';

export interface StreamHandlers {
  onOpen(): void;
  onEvent(event: ServerEvent): void;
  /** Called when the stream ends for any reason other than `close`. */
  onClose(error: ApiError): void;
}

/** Silence after which a stream counts as lost; the run sends at least once per second. */
const silenceMs = 10_000;

/** Reads one event stream until it ends, fails, falls silent or is closed. */
export class Stream {
  private readonly abort = new AbortController();
  private closed = false;
  private stopWatch: () => void = () => {};

  constructor(
    client: Client,
    path: string,
    private readonly timers: Timers,
    private readonly handlers: StreamHandlers,
  ) {
    void this.run(client, path);
  }

  close(): void {
    this.closed = true;
    this.stopWatch();
    this.abort.abort();
  }

  private async run(client: Client, path: string): Promise<void> {
    let cause = new ApiError(0, 'the connection was closed');
    try {
      this.watch();
      const response = await client.open(path, { signal: this.abort.signal });
      if (!response.body) throw new ApiError(0, 'the response has no body');
      if (this.closed) return;
      this.handlers.onOpen();
      await readEvents(
        response.body,
        (event) => {
          if (!this.closed) this.handlers.onEvent(event);
        },
        () => this.watch(),
      );
    } catch (error) {
      if (error instanceof ApiError) cause = error;
      else if (this.silent) cause = new ApiError(0, 'the run has been silent');
    }
    this.stopWatch();
    if (this.closed) return;
    this.closed = true;
    this.handlers.onClose(cause);
  }

  private silent = false;

  private watch(): void {
    this.stopWatch();
    if (this.closed) return;
    this.stopWatch = this.timers.after(silenceMs, () => {
      this.silent = true;
      this.abort.abort();
    });
  }
}
