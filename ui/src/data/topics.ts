import type { ApiError } from '../api/client';
import type { HistoryColumns, Problem, StatsEvent } from '../api/types';

/**
 * A subscription of a tab: the state of the connection, the totals of the run,
 * the history of a direction, or a polled document.
 */
export type Topic =
  | { kind: 'status' }
  | { kind: 'totals' }
  | { kind: 'history'; direction: string }
  | { kind: 'document'; path: string; every_ms: number };

export function topicKey(topic: Topic): string {
  switch (topic.kind) {
    case 'history':
      return `history ${topic.direction}`;
    case 'document':
      return `document ${topic.every_ms} ${topic.path}`;
    default:
      return topic.kind;
  }
}

export type Phase = 'connecting' | 'live' | 'lost' | 'ended' | 'denied';

/** State of the connection. Times are from `Date.now()`. */
export interface Status {
  phase: Phase;
  since_ms: number;
  failures: number;
  retryAt_ms: number | null;
  reason: string;
}

export interface Failure {
  status: number;
  message: string;
  problems: Problem[];
}

export function failureOf(error: ApiError): Failure {
  return { status: error.status, message: error.message, problems: error.problems };
}

/** A message to a subscriber; plain data, because it is sent between tabs. */
export type Update =
  | { kind: 'status'; status: Status }
  | { kind: 'totals'; event: StatsEvent }
  | { kind: 'history'; columns: HistoryColumns; replaces: boolean }
  | { kind: 'document'; value: unknown }
  | { kind: 'failure'; failure: Failure };

export type Listener = (update: Update) => void;

/** A tab's data source: a separate connection, or the shared one. */
export interface Source {
  subscribe(topic: Topic, listener: Listener): () => void;
  retry(): void;
}
