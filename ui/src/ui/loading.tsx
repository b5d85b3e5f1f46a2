import { useEnded } from '../data/use';

/** Shown until the first response; after the end of the run there is none. */
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
