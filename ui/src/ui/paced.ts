import { useEffect, useRef, useState } from 'preact/hooks';

/** A value that follows another at most every `pace_ms`, the first time at once. */
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
