const key = 'longwire-token';

/** Returns the token in a fragment such as `#token=0123abcd`. */
export function tokenOfFragment(fragment: string): string | null {
  const match = /^#\/?(?:.*[?&])?token=([0-9A-Za-z_-]+)/.exec(fragment);
  return match?.[1] ?? null;
}

/**
 * Removes the token from the address bar, so that it does not appear in
 * bookmarks, screenshots and shared links.
 */
export function takeToken(
  location: Location,
  history: History,
  storage: Storage,
): { token: string | null; given: boolean } {
  const token = tokenOfFragment(location.hash);
  if (token) {
    storage.setItem(key, token);
    history.replaceState(null, '', `${location.pathname}#/`);
    return { token, given: true };
  }
  return { token: storage.getItem(key), given: false };
}

export function keepToken(token: string, storage: Storage): void {
  storage.setItem(key, token);
}
