/** Shown when the page was opened without the token that the run printed. */
export function NoToken() {
  return (
    <main class="lone">
      <h1>Longwire</h1>
      <p>
        This page needs the token of its run. Open the whole address that the run printed, with the
        part after <code>#token=</code>.
      </p>
    </main>
  );
}
