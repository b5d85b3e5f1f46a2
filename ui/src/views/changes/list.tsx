import { useState } from 'preact/hooks';
import { ApiError } from '../../api/client';
import type { ChangeDone } from '../../api/types';
import { changeText } from '../../change/describe';
import { takeBack, undoStore } from '../../change/send';
import type { UndoEntry } from '../../change/undo';
import { useStore } from '../../data/store';
import { useChanges, useConnection, useTotals } from '../../data/use';
import { count, runTime } from '../../format';

const most = 100;

/** The changes of the run, newest first, with undo if possible. */
export function ChangeList({ mayChange }: { mayChange: boolean }) {
  const { client } = useConnection();
  const value = useChanges();
  const now_s = useTotals()?.elapsed_s ?? 0;
  const undos = useStore(undoStore);
  const [said, setSaid] = useState('');
  const undo = async (entry: UndoEntry): Promise<void> => {
    try {
      await takeBack(client, entry);
      setSaid(`Undone: ${entry.text}`);
    } catch (error) {
      setSaid(error instanceof ApiError ? error.message : String(error));
    }
  };
  const all = value?.changes ?? [];
  const shown = all.slice(-most).reverse();
  return (
    <section aria-labelledby="list-title">
      <h2 id="list-title">List of changes</h2>
      <p class="more" role="status">
        {said}
      </p>
      {value && all.length === 0 && <p class="more">No changes.</p>}
      {shown.length > 0 && (
        <div class="table-scroll" role="group" aria-label="Changes" tabIndex={0}>
          <table class="data changes">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">By</th>
                <th scope="col">Change</th>
                <th scope="col">Links</th>
                {mayChange && <th scope="col">Undo</th>}
              </tr>
            </thead>
            <tbody>
              {shown.map((done) => (
                <Row
                  key={`${done.at_ns} ${changeText(done.change)}`}
                  done={done}
                  pending={done.at_ns / 1e9 > now_s}
                  undo={undos.find(({ at_ns }) => at_ns === done.at_ns) ?? null}
                  mayChange={mayChange}
                  onUndo={undo}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {all.length > most && (
        <p class="more">
          Newest {most} of {count(all.length)}.
        </p>
      )}
      {value && value.forgotten > 0 && (
        <p class="more">The run no longer lists {count(value.forgotten)} older changes.</p>
      )}
    </section>
  );
}

interface RowProps {
  done: ChangeDone;
  pending: boolean;
  undo: UndoEntry | null;
  mayChange: boolean;
  onUndo: (entry: UndoEntry) => Promise<void>;
}

function Row({ done, pending, undo, mayChange, onUndo }: RowProps) {
  const text = changeText(done.change);
  return (
    <tr class={pending ? 'pending' : ''}>
      <td class="num">{runTime(done.at_ns / 1e9, 1)}</td>
      <td>{done.by}</td>
      <td class="text">
        <code>{text}</code>
        {pending && <span class="tag">scheduled</span>}
        {done.error && <span class="problem">failed: {done.error}</span>}
      </td>
      <td class="num">{count(done.links)}</td>
      {mayChange && (
        <td>
          {undo && !pending && (
            <button type="button" class="quiet" onClick={() => void onUndo(undo)}>
              Undo<span class="sr-only"> {text}</span>
            </button>
          )}
        </td>
      )}
    </tr>
  );
}
