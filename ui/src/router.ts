import { useEffect, useState } from 'preact/hooks';

export type Route =
  | { view: 'overview' }
  | { view: 'link'; name: string }
  | { view: 'flows'; name: string }
  | { view: 'fidelity' }
  | { view: 'changes'; target: string | null }
  | { view: 'unknown' };

/** Returns the view of a fragment such as `#/link/adsl7.up`. */
export function parseRoute(fragment: string): Route {
  const [path = '', query = ''] = fragment.replace(/^#\/?/, '').split('?');
  const [view = '', ...rest] = path.split('/');
  const name = decode(rest.join('/'));
  switch (view) {
    case '':
      return { view: 'overview' };
    case 'link':
    case 'flows':
      return name === '' ? { view: 'unknown' } : { view, name };
    case 'fidelity':
      return { view: 'fidelity' };
    case 'changes':
      return { view: 'changes', target: new URLSearchParams(query).get('target') };
    default:
      return { view: 'unknown' };
  }
}

export function href(route: Route): string {
  switch (route.view) {
    case 'overview':
    case 'unknown':
      return '#/';
    case 'link':
    case 'flows':
      return `#/${route.view}/${encodeURIComponent(route.name)}`;
    case 'fidelity':
      return '#/fidelity';
    case 'changes':
      return route.target === null
        ? '#/changes'
        : `#/changes?target=${encodeURIComponent(route.target)}`;
  }
}

export function navigate(route: Route): void {
  location.hash = href(route);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const changed = (): void => setRoute(parseRoute(location.hash));
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return route;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
