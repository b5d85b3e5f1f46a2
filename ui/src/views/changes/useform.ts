import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, type Client } from '../../api/client';
import type { Changed, Registry } from '../../api/types';
import {
  type Draft,
  missing,
  newPart,
  type Part,
  type Placed,
  place,
  toChange,
} from '../../change/draft';
import { send } from '../../change/send';

export type Verdict =
  | { kind: 'open'; text: string }
  | { kind: 'checking' }
  | { kind: 'fits'; changed: Changed }
  | { kind: 'refused'; text: string; placed: Placed[] }
  | { kind: 'done'; changed: Changed };

const pauseMs = 300;

/** A draft of a change, which the run validates during editing. */
export function useForm(client: Client, registry: Registry, target: string) {
  const [draft, setDraft] = useState<Draft>(() => ({
    parts: [newPart(1, target)],
    when: { kind: 'now', text: '' },
  }));
  const [verdict, setVerdict] = useState<Verdict>({ kind: 'open', text: '' });
  const [made, setMade] = useState<Changed | null>(null);
  const nextId = useRef(2);
  const changed = useCallback((change: (before: Draft) => Draft) => {
    setVerdict({ kind: 'checking' });
    setMade(null);
    setDraft(change);
  }, []);
  useEffect(() => {
    const text = missing(draft);
    if (text !== null) {
      setVerdict({ kind: 'open', text });
      return;
    }
    const abort = new AbortController();
    const id = setTimeout(async () => {
      const result = await check(client, registry, draft, abort.signal);
      if (result && !abort.signal.aborted) setVerdict(result);
    }, pauseMs);
    return () => {
      clearTimeout(id);
      abort.abort();
    };
  }, [draft, client, registry]);
  const apply = async (): Promise<void> => {
    try {
      setMade(await send(client, toChange(registry, draft)));
      setDraft({ parts: [newPart(nextId.current++, target)], when: { kind: 'now', text: '' } });
    } catch (error) {
      setVerdict(refused(draft, error));
    }
  };
  const setPart = (id: number, change: (before: Part) => Part): void =>
    changed((before) => ({
      ...before,
      parts: before.parts.map((part) => (part.id === id ? change(part) : part)),
    }));
  // The result is shown until the next change is started.
  const said: Verdict = made ? { kind: 'done', changed: made } : verdict;
  return { draft, verdict: said, changed, setPart, apply, newId: () => nextId.current++ };
}

export type Form = ReturnType<typeof useForm>;

async function check(
  client: Client,
  registry: Registry,
  draft: Draft,
  signal: AbortSignal,
): Promise<Verdict | null> {
  try {
    const body = toChange(registry, draft);
    const changed = await client.json<Changed>('/v1/changes?check=true', {
      method: 'POST',
      body,
      signal,
    });
    return { kind: 'fits', changed };
  } catch (error) {
    return signal.aborted ? null : refused(draft, error);
  }
}

function refused(draft: Draft, error: unknown): Verdict {
  if (!(error instanceof ApiError)) return { kind: 'refused', text: String(error), placed: [] };
  return { kind: 'refused', text: error.message, placed: place(draft, error.problems) };
}
