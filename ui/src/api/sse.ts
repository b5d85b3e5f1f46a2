/** A server-sent event. */
export interface ServerEvent {
  event: string;
  data: string;
}

/**
 * Parser for `text/event-stream` in chunks of any length.
 *
 * `EventSource` cannot send a token, so the stream is read with `fetch`. Only the
 * fields sent by Longwire, `event` and `data`, are kept. Comments are heartbeats
 * and produce no event.
 */
export class SseParser {
  /** Chunks of an incomplete line; joined once, because lines reach megabytes. */
  private pieces: string[] = [];
  private event = '';
  private data: string[] = [];
  private afterReturn = false;

  feed(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    let start = 0;
    for (let at = nextBreak(text, 0); at >= 0; at = nextBreak(text, start)) {
      // CR LF is one line break, even if split across two chunks.
      const isSecondHalf =
        this.afterReturn && at === 0 && text[0] === '\n' && this.pieces.length === 0;
      if (!isSecondHalf) {
        this.pieces.push(text.slice(start, at));
        this.line(this.pieces.join(''), events);
        this.pieces = [];
      }
      start = at + 1;
      this.afterReturn = false;
      if (text[at] === '\r') {
        if (text[start] === '\n') start += 1;
        else if (start === text.length) this.afterReturn = true;
      }
    }
    if (start < text.length) {
      this.pieces.push(text.slice(start));
      this.afterReturn = false;
    }
    return events;
  }

  private line(line: string, events: ServerEvent[]): void {
    if (line === '') {
      if (this.data.length > 0 || this.event !== '') {
        events.push({ event: this.event || 'message', data: this.data.join('\n') });
      }
      this.event = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
  }
}

function nextBreak(text: string, from: number): number {
  const lf = text.indexOf('\n', from);
  const head = lf < 0 ? text.slice(from) : text.slice(from, lf);
  const cr = head.indexOf('\r');
  return cr < 0 ? lf : from + cr;
}

/** Reads a stream to its end and reports every event; calls `alive` for each chunk. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: ServerEvent) => void,
  alive: () => void,
): Promise<void> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    for (const event of parser.feed(decoder.decode(value, { stream: true }))) onEvent(event);
  }
}
