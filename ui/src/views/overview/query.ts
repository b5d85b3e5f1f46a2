import { searchPattern } from '../../api/client';

export type SortKey = 'name' | 'bits_in' | 'bits_out' | 'drops' | 'queued' | 'late';

export interface TableQuery {
  search: string;
  sort: SortKey;
  order: 'asc' | 'desc';
}

/** The path without the requested range; equal for all pages of a query. */
export function queryPath(query: TableQuery): string {
  const parts = new URLSearchParams({ sort: query.sort, order: query.order });
  const pattern = searchPattern(query.search);
  if (pattern !== '') parts.set('match', pattern);
  return `/v1/table?${parts}`;
}

export function tablePath(query: TableQuery, offset: number, limit: number): string {
  return `${queryPath(query)}&offset=${offset}&limit=${limit}`;
}

/** Returns the order after a click on a column: names ascending, numbers descending. */
export function sortedBy(query: TableQuery, sort: SortKey): TableQuery {
  if (query.sort === sort) {
    return { ...query, order: query.order === 'asc' ? 'desc' : 'asc' };
  }
  return { ...query, sort, order: sort === 'name' ? 'asc' : 'desc' };
}

/** Returns the offset requested by a path of the table. */
export function offsetOf(path: string): number {
  return Number(new URLSearchParams(path.split('?')[1] ?? '').get('offset') ?? 0);
}
