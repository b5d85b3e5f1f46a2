// Visible rows of a long table, and their positions.

export const rowHeight = 30;
/** Rows rendered beyond the screen, so that scrolling shows no gaps. */
const overscan = 8;
/** More rows than the window ever contains, on a screen of 3,000 pixels. */
export const mostWindowRows = 128;
/** Browsers truncate elements higher than about 30 million pixels. */
const mostPixels = 12_000_000;

export interface Window {
  /** Height of all rows, or the maximum height in a browser. */
  height: number;
  offset: number;
  limit: number;
  /** Position of the row `offset`. */
  top: number;
}

/**
 * Returns the window at a scroll position. Above `mostPixels`, the scroll bar moves several rows
 * per pixel.
 */
export function windowAt(scrollTop: number, viewport: number, rows: number): Window {
  const whole = rows * rowHeight;
  const height = Math.min(whole, mostPixels);
  const scale = whole > height && height > viewport ? (whole - viewport) / (height - viewport) : 1;
  const position = Math.max(0, Math.min(scrollTop, Math.max(0, height - viewport)));
  const virtual = position * scale;
  const first = Math.floor(virtual / rowHeight);
  const offset = Math.max(0, Math.min(first - overscan, Math.max(0, rows - 1)));
  const visible = Math.ceil(viewport / rowHeight) + 1;
  const most = Math.min(mostWindowRows, visible + 2 * overscan);
  const limit = Math.max(0, Math.min(rows - offset, most));
  return { height, offset, limit, top: position - (virtual - offset * rowHeight) };
}

/** Returns the scroll position that shows a row, or null if the row is visible. */
export function scrollToRow(
  row: number,
  scrollTop: number,
  viewport: number,
  rows: number,
): number | null {
  const whole = rows * rowHeight;
  const height = Math.min(whole, mostPixels);
  const scale = whole > height && height > viewport ? (whole - viewport) / (height - viewport) : 1;
  const virtual = scrollTop * scale;
  const top = row * rowHeight;
  if (top < virtual) return top / scale;
  if (top + rowHeight > virtual + viewport) return (top + rowHeight - viewport) / scale;
  return null;
}

/**
 * Returns the range of the table to request: whole pages, so that slow scrolling
 * does not send a request per row.
 */
export function pageOf(window: Window, page = 25): { offset: number; limit: number } {
  const offset = Math.floor(window.offset / page) * page;
  const end = Math.ceil((window.offset + window.limit) / page) * page;
  return { offset, limit: Math.max(page, end - offset) };
}

/** Returns the row that a key moves to, or null for other keys. */
export function moveBy(key: string, row: number, rows: number, viewport: number): number | null {
  if (rows === 0) return null;
  const page = Math.max(1, Math.floor(viewport / rowHeight) - 1);
  const last = rows - 1;
  switch (key) {
    case 'ArrowDown':
      return Math.min(last, row + 1);
    case 'ArrowUp':
      return Math.max(0, row - 1);
    case 'PageDown':
      return Math.min(last, row + page);
    case 'PageUp':
      return Math.max(0, row - page);
    case 'Home':
      return 0;
    case 'End':
      return last;
    default:
      return null;
  }
}
