/// <reference lib="webworker" />
// The connection shared by all tabs. Each tab has a port; a tab's subscriptions
// end with it.
import { Client } from '../api/client';
import { Hub } from './hub';
import type { ToTab, ToWorker } from './protocol';
import { realTimers } from './timers';

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null };
const hub = new Hub(realTimers);
let current: string | null = null;

scope.onconnect = (event) => {
  const port = event.ports[0];
  if (port) serve(port);
};

function useToken(token: string): void {
  if (token === current) {
    hub.retry();
    return;
  }
  current = token;
  hub.connect(new Client((input, init) => fetch(input, init), token));
}

function serve(port: MessagePort): void {
  const ends = new Map<number, () => void>();
  const send = (message: ToTab): void => port.postMessage(message);
  const finish = (): void => {
    for (const end of ends.values()) end();
    ends.clear();
    port.close();
  };
  port.onmessage = (event: MessageEvent<ToWorker>) => {
    const message = event.data;
    switch (message.kind) {
      case 'hello':
        // A token stored by a tab may belong to an earlier run at this address; a token
        // in the opened URL belongs to this run.
        if (message.token && (message.given || !current)) useToken(message.token);
        send({ kind: 'token', token: current });
        whenReleased(message.lock, finish);
        break;
      case 'subscribe': {
        const { id, topic } = message;
        ends.set(
          id,
          hub.subscribe(topic, (update) => send({ kind: 'update', id, update })),
        );
        break;
      }
      case 'unsubscribe':
        ends.get(message.id)?.();
        ends.delete(message.id);
        break;
      case 'retry':
        hub.retry();
        break;
      case 'bye':
        finish();
        break;
    }
  };
}

/**
 * Calls `action` when a tab's lock is released. A tab holds its lock for its
 * lifetime; a port has no event for a crashed tab.
 */
function whenReleased(lock: string, action: () => void): void {
  if (!('locks' in navigator)) return;
  void navigator.locks.request(lock, action);
}
