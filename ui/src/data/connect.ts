import { Client } from '../api/client';
import { Hub } from './hub';
import { SharedSource } from './shared';
import { realTimers } from './timers';
import type { Source } from './topics';

export interface Connection {
  source: Source;
  /** The token in use, from this tab or another; null if there is none. */
  token: string | null;
}

const browserFetch = (input: string, init?: RequestInit): Promise<Response> => fetch(input, init);

/** Returns a client for single requests, such as changes. */
export function clientOf(token: string): Client {
  return new Client(browserFetch, token);
}

/** Joins the tabs' shared connection, or opens a separate one without shared workers. */
export async function connect(token: string | null, given: boolean): Promise<Connection> {
  if ('SharedWorker' in window) {
    try {
      return await joinShared(token, given);
    } catch {
      // A browser may have the class but refuse to start it, for example in private windows.
    }
  }
  const hub = new Hub(realTimers);
  if (token) hub.connect(clientOf(token));
  return { source: hub, token };
}

const answerMs = 3000;

function joinShared(token: string | null, given: boolean): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), {
      type: 'module',
      name: 'longwire-view',
    });
    const timeout = setTimeout(() => reject(new Error('the worker does not answer')), answerMs);
    worker.onerror = () => {
      clearTimeout(timeout);
      reject(new Error('the worker cannot start'));
    };
    const port = worker.port;
    const source = new SharedSource(port as MessagePort & { onmessage: never }, (known) => {
      clearTimeout(timeout);
      resolve({ source, token: known });
    });
    const lock = `longwire-tab-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;
    hold(lock, () => port.postMessage({ kind: 'hello', token, given, lock }));
    window.addEventListener('pagehide', () => port.postMessage({ kind: 'bye' }));
    // A page restored from the back-forward cache has lost its subscriptions.
    window.addEventListener('pageshow', (event) => {
      if (event.persisted) location.reload();
    });
  });
}

/** Takes a lock for the lifetime of the tab, then continues. */
function hold(lock: string, then: () => void): void {
  if (!('locks' in navigator)) {
    then();
    return;
  }
  void navigator.locks.request(lock, () => {
    then();
    return new Promise<never>(() => {});
  });
}
