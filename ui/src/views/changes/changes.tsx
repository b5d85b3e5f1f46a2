import { useEnded, useMayChange, useRun } from '../../data/use';
import { Loading } from '../../ui/loading';
import { ChangeForm } from './form';
import { ChangeList } from './list';
import { Recorder } from './recorder';
import { Timeline } from './timeline';

/** Past and scheduled changes, and the form for new ones. */
export function Changes({ target }: { target: string | null }) {
  const mayChange = useMayChange();
  const replays = useRun()?.replay !== undefined;
  return (
    <>
      <h1>Changes</h1>
      {mayChange === null ? (
        <Loading label="Loading the run" />
      ) : replays ? (
        <p class="notice">
          This run is a replay: its links decide frames ahead of time, so they cannot be changed.
          Start the replay again with other options.
        </p>
      ) : (
        <Parts mayChange={mayChange} target={target} />
      )}
    </>
  );
}

function Parts(props: { mayChange: boolean; target: string | null }) {
  const { target } = props;
  const ended = useEnded();
  const mayChange = props.mayChange && !ended;
  return (
    <>
      {ended && <p class="notice">The run has ended and can no longer be changed.</p>}
      {!props.mayChange && !ended && (
        <p class="notice">
          This page has a read-only token. To change the network, open the other URL that the run
          printed, or use <code>longwire ctl</code>.
        </p>
      )}
      <Timeline mayChange={mayChange} />
      {mayChange && <ChangeForm key={target ?? ''} target={target ?? ''} />}
      <ChangeList mayChange={mayChange} />
      <Recorder />
    </>
  );
}
