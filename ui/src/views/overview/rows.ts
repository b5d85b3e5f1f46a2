import type { TablePage, TableRow } from '../../api/types';

/** Pages of the table that were shown, so that going back does not show gaps. */
const keptRows = 2000;

/**
 * Rows by their place under one search and order. Rows that have left the
 * screen stay for a while, with the numbers that they had.
 */
export class RowCache {
  private readonly rows = new Map<number, TableRow>();

  put(offset: number, page: TablePage): void {
    page.rows.forEach((row, at) => {
      // Deleted first, so that the order of the map is that of the last use.
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
