import { useEnded } from '../data/use';

/** Shown until the first response; after the end of the run there is none. */
export function Loading({ label }: { label: string }) {
  const ended = useEnded();
  return (
    <p class="empty" role="status">
      {ended
        ? 'The run has ended, and the page has not received this part of it. Views that were open before are kept.'
        : `${label} …`}
    </p>
  );
}
