import type { Topic, Update } from './topics';

/** Messages from a tab to the worker with the shared connection. */
export type ToWorker =
  | { kind: 'hello'; token: string | null; given: boolean; lock: string }
  | { kind: 'subscribe'; id: number; topic: Topic }
  | { kind: 'unsubscribe'; id: number }
  | { kind: 'retry' }
  | { kind: 'bye' };

/** Messages from the worker to a tab. */
export type ToTab =
  | { kind: 'token'; token: string | null }
  | { kind: 'update'; id: number; update: Update };
