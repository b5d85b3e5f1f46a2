import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { scrollToRow, windowAt } from './window';

/** The window of rows of a scrolling element, recomputed at most once per frame. */
export function useScrollWindow(rows: number) {
  const ref = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ scrollTop: 0, viewport: 480 });
  const frame = useRef(0);
  const measure = useCallback(() => {
    frame.current = 0;
    const element = ref.current;
    if (!element) return;
    setPlace((before) =>
      before.scrollTop === element.scrollTop && before.viewport === element.clientHeight
        ? before
        : { scrollTop: element.scrollTop, viewport: element.clientHeight },
    );
  }, []);
  const onScroll = useCallback(() => {
    if (frame.current === 0) frame.current = requestAnimationFrame(measure);
  }, [measure]);
  useEffect(() => {
    measure();
    const observer = new ResizeObserver(onScroll);
    if (ref.current) observer.observe(ref.current);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, [measure, onScroll]);
  const show = (row: number): void => {
    const element = ref.current;
    if (!element) return;
    // The table header covers the height of a row at the top.
    const room = element.clientHeight - headHeight;
    const target = scrollToRow(row, element.scrollTop, room, rows);
    if (target !== null) element.scrollTop = target;
  };
  const window = windowAt(place.scrollTop, place.viewport, rows);
  return { ref, onScroll, window, viewport: place.viewport - headHeight, show };
}

const headHeight = 32;
