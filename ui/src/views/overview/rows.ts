import type { TablePage, TableRow } from '../../api/types';

/** Maximum number of rows kept, so that scrolling back shows no gaps. */
const keptRows = 2000;

/**
 * Rows by position, for one search and order. Rows that have left the screen are
 * kept for a while with their last values.
 */
export class RowCache {
  private readonly rows = new Map<number, TableRow>();

  put(offset: number, page: TablePage): void {
    page.rows.forEach((row, at) => {
      // Deleted first, so that the map is ordered by last use.
      this.rows.delete(offset + at);
      this.rows.set(offset + at, row);
    });
    for (const place of this.rows.keys()) {
      if (this.rows.size <= keptRows && place < page.fitting) break;
      if (this.rows.size > keptRows || place >= page.fitting) this.rows.delete(place);
    }
  }

  at(place: number): TableRow | null {
    return this.rows.get(place) ?? null;
  }

  get size(): number {
    return this.rows.size;
  }
}
