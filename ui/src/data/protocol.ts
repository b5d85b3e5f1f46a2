import type { Topic, Update } from './topics';

/** Messages of a tab to the worker that holds the shared connection. */
export type ToWorker =
  | { kind: 'hello'; token: string | null; given: boolean; lock: string }
  | { kind: 'subscribe'; id: number; topic: Topic }
  | { kind: 'unsubscribe'; id: number }
  | { kind: 'retry' }
  | { kind: 'bye' };

/** Messages of the worker to a tab. */
export type ToTab =
  | { kind: 'token'; token: string | null }
  | { kind: 'update'; id: number; update: Update };
