import { describe, expect, test } from 'vitest';
import { readEvents, type ServerEvent, SseParser } from '../../src/api/sse';

const stream =
  'data: {"a":1}\n\n: heartbeat\n\nevent: end\ndata: {"reason":"over"}\n\ndata:one\ndata: two\n\nevent: bare\n\n';
const expected: ServerEvent[] = [
  { event: 'message', data: '{"a":1}' },
  { event: 'end', data: '{"reason":"over"}' },
  { event: 'message', data: 'one\ntwo' },
  { event: 'bare', data: '' },
];

function cutAt(text: string, size: number): ServerEvent[] {
  const parser = new SseParser();
  const events: ServerEvent[] = [];
  for (let at = 0; at < text.length; at += size)
    events.push(...parser.feed(text.slice(at, at + size)));
  return events;
}

describe('event stream parser', () => {
  test('yields the same events regardless of chunk boundaries', () => {
    for (let size = 1; size <= stream.length; size += 1) {
      expect(cutAt(stream, size), `pieces of ${size}`).toEqual(expected);
    }
  });

  test.each([
    ['CR LF', '\r\n'],
    ['CR', '\r'],
  ])('takes %s as the end of a line, cut anywhere', (_, end) => {
    const text = stream.replaceAll('\n', end);
    for (let size = 1; size <= text.length; size += 1) {
      // A lone CR at the end may be half of a CR LF, but ends the line in any case.
      expect(cutAt(text, size), `pieces of ${size}`).toEqual(expected);
    }
  });

  test('holds an event until its empty line', () => {
    const parser = new SseParser();
    expect(parser.feed('data: x\n')).toEqual([]);
    expect(parser.feed('\n')).toEqual([{ event: 'message', data: 'x' }]);
  });

  test('ignores unknown fields', () => {
    expect(new SseParser().feed('id: 3\nretry: 10\ndata: x\n\n')).toEqual([
      { event: 'message', data: 'x' },
    ]);
  });

  test('parses a line of many chunks in linear time', () => {
    const parser = new SseParser();
    const piece = 'x'.repeat(1000);
    const start = performance.now();
    parser.feed('data: ');
    for (let at = 0; at < 20_000; at += 1) parser.feed(piece);
    const [event] = parser.feed('\n\n');
    expect(event?.data.length).toBe(20_000_000);
    expect(performance.now() - start).toBeLessThan(3000);
  });

  test('decodes characters split across chunks', async () => {
    const bytes = new TextEncoder().encode('data: 12 µs – ok\n\n');
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    const events: ServerEvent[] = [];
    let alive = 0;
    await readEvents(
      body,
      (event) => events.push(event),
      () => (alive += 1),
    );
    expect(events).toEqual([{ event: 'message', data: '12 µs – ok' }]);
    expect(alive).toBe(bytes.length);
  });
});
