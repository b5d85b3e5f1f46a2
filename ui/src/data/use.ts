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

/** Whether anybody can see the page. A hidden page asks for nothing. */
export function useVisible(): boolean {
  const [visible, setVisible] = useState(() => document.visibilityState !== 'hidden');
  useEffect(() => {
    const changed = (): void => setVisible(document.visibilityState !== 'hidden');
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  }, []);
  return visible;
}

/** Subscribes while the component is there and the page is visible. */
function useTopic(topic: Topic | null, key: string, onUpdate: (update: Update) => void): void {
  const { source } = useConnection();
  const visible = useVisible();
  const handler = useRef(onUpdate);
  handler.current = onUpdate;
  // The key stands for the topic, which is a new object every time.
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

/** Whether the run has ended: nothing can be asked or changed any more. */
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
  /** The path that `value` answers, while the answer to a new one is under way. */
  path: string | null;
}

/** A document that is asked for every `every_ms`; once when that is 0. */
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

/** The history of a direction. The object is the same while `version` counts up. */
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

/** A run keeps up to 10,000 changes, which are megabytes: many are asked for less often. */
const manyChanges = 1000;

/** The changes of the run, null before the first answer. */
export function useChanges(): Changes | null {
  const [every_ms, setEvery] = useState(1000);
  const { value } = useDocument<Changes>('/v1/changes', every_ms);
  const wanted_ms = (value?.changes.length ?? 0) > manyChanges ? 10_000 : 1000;
  useEffect(() => setEvery(wanted_ms), [wanted_ms]);
  return value;
}

/** Whether the token may change the network; null while that is not known. */
export function useMayChange(): boolean | null {
  return useRun()?.may_change ?? null;
}
