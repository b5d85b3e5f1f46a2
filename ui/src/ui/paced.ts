import { useEffect, useRef, useState } from 'preact/hooks';

/** Throttles a value to one update per `pace_ms`; the first update is immediate. */
export function usePaced<T>(value: T, pace_ms: number): T {
  const [paced, setPaced] = useState(value);
  const changed_ms = useRef(0);
  useEffect(() => {
    if (Object.is(paced, value)) return;
    const wait_ms = changed_ms.current + pace_ms - performance.now();
    const take = (): void => {
      changed_ms.current = performance.now();
      setPaced(() => value);
    };
    if (wait_ms <= 0) {
      take();
      return;
    }
    const id = setTimeout(take, wait_ms);
    return () => clearTimeout(id);
  }, [value, paced, pace_ms]);
  return paced;
}
