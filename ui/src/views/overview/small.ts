import { useEffect, useState } from 'preact/hooks';

const query = '(max-width: 640px)';

/** Whether the screen has the width of a phone. */
export function useSmall(): boolean {
  const [small, setSmall] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = (): void => setSmall(list.matches);
    list.addEventListener('change', changed);
    return () => list.removeEventListener('change', changed);
  }, []);
  return small;
}
