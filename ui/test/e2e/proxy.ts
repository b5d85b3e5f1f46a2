import { readFileSync, statSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { extname, join, normalize } from 'node:path';

const dist = new URL('../../dist', import.meta.url).pathname;
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** As the program sends it. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/**
 * A way to a run that can be cut, as a network between browser and run can. It
 * serves the page of dist/ with the program's policy, so that a program that was
 * built without the page can be tested too.
 */
export class CutProxy {
  private server: Server | null = null;
  private readonly sockets = new Set<Socket>();
  port = 0;
  onRequest: (path: string) => void = () => {};

  constructor(private readonly target: string) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async open(): Promise<void> {
    const server = createServer((incoming, outgoing) => this.serve(incoming, outgoing));
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /** Closes every connection and refuses new ones. */
  async cut(): Promise<void> {
    const server = this.server;
    this.server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const path = (incoming.url ?? '/').split('?')[0] ?? '/';
    if (path.startsWith('/v1')) this.forward(incoming, outgoing);
    else serveFile(path, outgoing);
  }

  private forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    this.onRequest(incoming.url ?? '');
    const target = new URL(this.target);
    const { origin: _, ...headers } = incoming.headers;
    const onward = request(
      {
        host: target.hostname,
        port: target.port,
        method: incoming.method,
        path: incoming.url,
        headers: { ...headers, host: target.host },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        answer.on('error', () => outgoing.destroy());
      },
    );
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}

function serveFile(path: string, outgoing: ServerResponse): void {
  const file = join(dist, normalize(path === '/' ? '/index.html' : path));
  try {
    if (!file.startsWith(dist) || !statSync(file).isFile()) throw new Error('no file');
    outgoing.writeHead(200, {
      'content-type': types[extname(file)] ?? 'application/octet-stream',
      'content-security-policy': policy,
      'cache-control': 'no-store',
    });
    outgoing.end(readFileSync(file));
  } catch {
    outgoing.writeHead(404).end();
  }
}
