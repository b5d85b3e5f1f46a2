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
        <Loading label="Asking the run" />
      ) : replays ? (
        <p class="notice">
          This run is a replay: its frames are read ahead and its links have decided about them, so
          that nothing can be changed. Start it again with other options.
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
      {ended && <p class="notice">The run has ended: nothing can be changed any more.</p>}
      {!props.mayChange && !ended && (
        <p class="notice">
          This page was opened with the token that may only read, so it has no controls. The other
          address that the run printed, or <code>longwire ctl</code>, can change the network.
        </p>
      )}
      <Timeline mayChange={mayChange} />
      {mayChange && <ChangeForm key={target ?? ''} target={target ?? ''} />}
      <ChangeList mayChange={mayChange} />
      <Recorder />
    </>
  );
}
