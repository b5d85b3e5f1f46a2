import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Client } from '../api/client';
import type { Changes, Run, StatsEvent } from '../api/types';
import { History } from './history';
import type { Failure, Source, Status, Topic, Update } from './topics';

export interface Context {
  source: Source;
  client: Client;
}

export const ConnectionContext = createContext<Context | null>(null);

export function useConnection(): Context {
  const context = useContext(ConnectionContext);
  if (!context) throw new Error('outside of a connection');
  return context;
}

/** Returns whether the page is visible. A hidden page sends no requests. */
export function useVisible(): boolean {
  const [visible, setVisible] = useState(() => document.visibilityState !== 'hidden');
  useEffect(() => {
    const changed = (): void => setVisible(document.visibilityState !== 'hidden');
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  }, []);
  return visible;
}

/** Subscribes while the component is mounted and the page is visible. */
function useTopic(topic: Topic | null, key: string, onUpdate: (update: Update) => void): void {
  const { source } = useConnection();
  const visible = useVisible();
  const handler = useRef(onUpdate);
  handler.current = onUpdate;
  // The dependency is the key, because the topic is a new object in each rendering.
  useEffect(() => {
    if (!topic || !visible) return;
    return source.subscribe(topic, (update) => handler.current(update));
  }, [source, key, visible]);
}

export function useStatus(): Status {
  const [status, setStatus] = useState<Status>({
    phase: 'connecting',
    since_ms: Date.now(),
    failures: 0,
    retryAt_ms: null,
    reason: '',
  });
  useTopic({ kind: 'status' }, 'status', (update) => {
    if (update.kind === 'status') setStatus(update.status);
  });
  return status;
}

/** Returns whether the run has ended, after which requests and changes are impossible. */
export function useEnded(): boolean {
  return useStatus().phase === 'ended';
}

export function useTotals(): StatsEvent | null {
  const [event, setEvent] = useState<StatsEvent | null>(null);
  useTopic({ kind: 'totals' }, 'totals', (update) => {
    if (update.kind === 'totals') setEvent(update.event);
  });
  return event;
}

export interface Document<T> {
  value: T | null;
  failure: Failure | null;
  /** The path that `value` belongs to; differs while the request for a new path is pending. */
  path: string | null;
}

/** Returns a document polled every `every_ms`, or requested once if that is 0. */
export function useDocument<T>(path: string | null, every_ms: number): Document<T> {
  const [document, setDocument] = useState<Document<T>>({ value: null, failure: null, path: null });
  const topic: Topic | null = path === null ? null : { kind: 'document', path, every_ms };
  useTopic(topic, `${path} ${every_ms}`, (update) => {
    if (update.kind === 'document') setDocument({ value: update.value as T, failure: null, path });
    else if (update.kind === 'failure') {
      setDocument((before) => ({ ...before, failure: update.failure }));
    }
  });
  return document;
}

export interface HistoryView {
  history: History;
  version: number;
  failure: Failure | null;
}

/** Returns the history of a direction. The object stays the same; `version` counts its changes. */
export function useHistory(direction: string): HistoryView {
  const held = useRef<{ direction: string; history: History } | null>(null);
  if (held.current?.direction !== direction) held.current = { direction, history: new History() };
  const { history } = held.current;
  const [view, setView] = useState<{ version: number; failure: Failure | null }>({
    version: 0,
    failure: null,
  });
  useTopic({ kind: 'history', direction }, `history ${direction}`, (update) => {
    if (update.kind === 'history') {
      if (update.replaces) history.replace(update.columns);
      else history.append(update.columns);
      setView({ version: history.version, failure: null });
    } else if (update.kind === 'failure') {
      setView((before) => ({ ...before, failure: update.failure }));
    }
  });
  return { history, version: history.version, failure: view.failure };
}

export function useRun(): Run | null {
  return useDocument<Run>('/v1', 60_000).value;
}

/** Number of changes above which they are polled less often; 10,000 changes are megabytes. */
const manyChanges = 1000;

/** Returns the changes of the run; null before the first response. */
export function useChanges(): Changes | null {
  const [every_ms, setEvery] = useState(1000);
  const { value } = useDocument<Changes>('/v1/changes', every_ms);
  const wanted_ms = (value?.changes.length ?? 0) > manyChanges ? 10_000 : 1000;
  useEffect(() => setEvery(wanted_ms), [wanted_ms]);
  return value;
}

/** Returns whether the token may change the network; null if not yet known. */
export function useMayChange(): boolean | null {
  return useRun()?.may_change ?? null;
}
