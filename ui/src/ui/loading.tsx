import { useEnded } from '../data/use';

/** Placeholder until the first response. Once the run has ended, there is no response. */
export function Loading({ label }: { label: string }) {
  const ended = useEnded();
  return (
    <p class="empty" role="status">
      {ended
        ? 'The run ended before this view was opened. Views opened earlier remain available.'
        : `${label} …`}
    </p>
  );
}
