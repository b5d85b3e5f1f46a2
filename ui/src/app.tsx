import { useEffect, useRef } from 'preact/hooks';
import type { Links } from './api/types';
import { useDocument, useRun, useStatus } from './data/use';
import { href, parseRoute, type Route, useRoute } from './router';
import { ConnectionBanner } from './ui/banner';
import { Header } from './ui/header';
import { Changes } from './views/changes/changes';
import { FidelityView } from './views/fidelity/fidelity';
import { FlowsView } from './views/flows';
import { LinkView } from './views/link/link';
import { Overview } from './views/overview/overview';

function titleOf(route: Route): string {
  switch (route.view) {
    case 'overview':
      return 'Overview';
    case 'link':
      return route.name;
    case 'flows':
      return `Flows of ${route.name}`;
    case 'fidelity':
      return 'Fidelity';
    case 'changes':
      return 'Changes';
    case 'unknown':
      return 'No such view';
  }
}

function View({ route }: { route: Route }) {
  switch (route.view) {
    case 'overview':
      return <Overview />;
    case 'link':
      return <LinkView key={route.name} direction={route.name} />;
    case 'flows':
      return <FlowsView key={route.name} direction={route.name} />;
    case 'fidelity':
      return <FidelityView />;
    case 'changes':
      return <Changes target={route.target} />;
    case 'unknown':
      return (
        <>
          <h1>No such view</h1>
          <p>
            Go to the <a href="#/">overview</a>.
          </p>
        </>
      );
  }
}

/** Shows the charts first if the run has a single link. */
function useOpening(route: Route): void {
  const opening = useRef(true);
  if (route.view !== 'overview') opening.current = false;
  const run = useRun();
  const links = useDocument<Links>(opening.current ? '/v1/links?limit=2' : null, 60_000).value;
  useEffect(() => {
    if (!opening.current || !run || !links) return;
    opening.current = false;
    // Read the fragment, because `route` is updated only after it changes.
    if (parseRoute(location.hash).view !== 'overview') return;
    const [only, ...more] = links.links;
    if (run.replay || !only || more.length > 0) return;
    location.replace(href({ view: 'link', name: `${only.name}.up` }));
  }, [run, links]);
}

export function App() {
  const route = useRoute();
  useOpening(route);
  const status = useStatus();
  const title = titleOf(route);
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${title} – Longwire`;
    // Screen readers read a new view from its top; the browser handles the first one.
    if (!first.current) {
      main.current?.focus();
      window.scrollTo(0, 0);
    }
    first.current = false;
  }, [title]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          // The fragment is reserved for the router.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the view
      </a>
      <Header route={route} status={status} />
      <ConnectionBanner status={status} />
      <main id="main" ref={main} tabIndex={-1} aria-label={title}>
        <View route={route} />
      </main>
    </>
  );
}
