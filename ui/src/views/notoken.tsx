/** Message for a page that is opened without the token printed by the run. */
export function NoToken() {
  return (
    <main class="lone">
      <h1>Longwire</h1>
      <p>
        This page needs the token of its run. Open the complete URL that the run printed, including
        the part after <code>#token=</code>.
      </p>
    </main>
  );
}
