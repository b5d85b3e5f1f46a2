// Which rows of a long table are on the screen, and where they stand.

export const rowHeight = 30;
/** Rows beyond the screen, so that a scroll shows rows and not gaps. */
const overscan = 8;
/** More than are ever in the window, on a screen of 3,000 pixels. */
export const mostWindowRows = 128;
/** Browsers cut elements that are higher than some 30 million pixels. */
const mostPixels = 12_000_000;

export interface Window {
  /** Height of all rows, or the most that a browser takes. */
  height: number;
  offset: number;
  limit: number;
  /** Where the row `offset` stands. */
  top: number;
}

/** The window for a scroll position. Beyond `mostPixels` the scroll bar moves several rows a pixel. */
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

/** The scroll position that shows a row, or null when it is shown already. */
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
 * The part of the table to ask for: whole pages, so that a slow scroll does not
 * ask for a new part with every row.
 */
export function pageOf(window: Window, page = 25): { offset: number; limit: number } {
  const offset = Math.floor(window.offset / page) * page;
  const end = Math.ceil((window.offset + window.limit) / page) * page;
  return { offset, limit: Math.max(page, end - offset) };
}

/** The row that a key leads to, or null for keys that do not move. */
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
