import { useState } from 'preact/hooks';
import { ApiError } from '../../api/client';
import type { LinkState } from '../../api/types';
import type { Action } from '../../change/draft';
import { send, takeBack, undoStore } from '../../change/send';
import { useStore } from '../../data/store';
import { useConnection, useEnded } from '../../data/use';

const actions: { action: Exclude<Action, 'set'>; label: string; state: LinkState }[] = [
  { action: 'on', label: 'On', state: 'on' },
  { action: 'pause', label: 'Pause', state: 'paused' },
  { action: 'off', label: 'Off', state: 'off' },
];

/** Buttons for on, pause and off of one target, with undo. */
export function StateButtons({ target, state }: { target: string; state: LinkState | null }) {
  const { client } = useConnection();
  const [problem, setProblem] = useState('');
  const newest = useStore(undoStore)[0];
  const ended = useEnded();
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      setProblem('');
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  };
  return (
    <>
      <span class="segments" role="group" aria-label={`State of ${target}`}>
        {actions.map(({ action, label, state: result }) => (
          <button
            key={action}
            type="button"
            aria-pressed={state === result}
            disabled={ended}
            onClick={() => void run(() => send(client, { [action]: [target] }))}
          >
            {label}
          </button>
        ))}
      </span>
      {newest && (
        <button
          type="button"
          class="quiet"
          disabled={ended}
          title={newest.text}
          onClick={() => void run(() => takeBack(client, newest))}
        >
          Undo<span class="sr-only">: {newest.text}</span>
        </button>
      )}
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}
