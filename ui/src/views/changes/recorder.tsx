import { useState } from 'preact/hooks';
import type { Registry } from '../../api/types';
import { recorded, scenarioOf } from '../../change/scenario';
import { Store, useStore } from '../../data/store';
import { useChanges, useDocument, useEnded, useTotals } from '../../data/use';
import { count, runTime } from '../../format';
import { download } from '../../ui/download';

interface Recording {
  from_ns: number;
  /** Null during recording. */
  to_ns: number | null;
}

const recordingStore = new Store<Recording | null>('longwire-recording', null);

/** Converts the manual changes of a period of the run to a scenario file. */
export function Recorder() {
  const recording = useStore(recordingStore);
  const ended = useEnded();
  const now_ns = (useTotals()?.elapsed_s ?? 0) * 1e9;
  const changes = useChanges()?.changes ?? [];
  // Statistics are up to a second old, whereas changes are shown immediately.
  const last_ns = Math.max(now_ns, ...changes.map((done) => done.at_ns + 1));
  const [fromStart, setFromStart] = useState(true);
  const part = recording
    ? recorded(changes, recording.from_ns, recording.to_ns ?? Number.POSITIVE_INFINITY)
    : [];
  const registry = useDocument<Registry>('/v1/models', 0).value;
  const defaults = Object.fromEntries(
    (registry?.options ?? []).map((option) => [option.name, option.default]),
  );
  const text = recording ? scenarioOf(part, fromStart ? 0 : recording.from_ns, defaults) : '';
  const active = recording !== null && recording.to_ns === null;
  return (
    <section aria-labelledby="recorder-title">
      <h2 id="recorder-title">Recorder</h2>
      <p class="more">
        Saves manual changes, made here or with <code>longwire ctl</code>, as a file for{' '}
        <code>--scenario FILE</code>.
      </p>
      <div class="toolbar">
        {active ? (
          <button
            type="button"
            onClick={() => recordingStore.set({ ...recording, to_ns: last_ns })}
          >
            Stop recording
          </button>
        ) : (
          <>
            <button
              type="button"
              disabled={ended}
              onClick={() => recordingStore.set({ from_ns: last_ns, to_ns: null })}
            >
              Record from now
            </button>
            <button type="button" onClick={() => recordingStore.set({ from_ns: 0, to_ns: null })}>
              Record from the start of the run
            </button>
          </>
        )}
        {recording && (
          <span class="more num" role="status">
            {active ? 'Recording' : 'Recorded'} from {runTime(recording.from_ns / 1e9)}
            {recording.to_ns !== null && ` to ${runTime(recording.to_ns / 1e9)}`}:{' '}
            {count(part.length)} {part.length === 1 ? 'change' : 'changes'}
          </span>
        )}
      </div>
      {recording && (
        <>
          <label class="check">
            <input
              type="checkbox"
              checked={fromStart}
              onChange={(event) => setFromStart(event.currentTarget.checked)}
            />
            Keep the times of the run, instead of times since the start of the recording
          </label>
          <pre role="group" aria-label="Scenario file" tabIndex={0}>
            {text}
          </pre>
          <button
            type="button"
            disabled={part.length === 0}
            onClick={() => download('scenario.toml', text, 'application/toml')}
          >
            Download scenario.toml
          </button>
        </>
      )}
    </section>
  );
}
