/** Shown until the first answer. */
export function Loading({ label }: { label: string }) {
  return (
    <p class="empty" role="status">
      {label} …
    </p>
  );
}
