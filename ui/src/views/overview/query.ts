import { searchPattern } from '../../api/client';

export type SortKey = 'name' | 'bits_in' | 'bits_out' | 'drops' | 'queued' | 'late';

export interface TableQuery {
  search: string;
  sort: SortKey;
  order: 'asc' | 'desc';
}

/** The path without the part that is asked for: the same for all pages of a query. */
export function queryPath(query: TableQuery): string {
  const parts = new URLSearchParams({ sort: query.sort, order: query.order });
  const pattern = searchPattern(query.search);
  if (pattern !== '') parts.set('match', pattern);
  return `/v1/table?${parts}`;
}

export function tablePath(query: TableQuery, offset: number, limit: number): string {
  return `${queryPath(query)}&offset=${offset}&limit=${limit}`;
}

/** The order after a click on a column: names begin at the first, numbers at the largest. */
export function sortedBy(query: TableQuery, sort: SortKey): TableQuery {
  if (query.sort === sort) {
    return { ...query, order: query.order === 'asc' ? 'desc' : 'asc' };
  }
  return { ...query, sort, order: sort === 'name' ? 'asc' : 'desc' };
}

/** The offset that a path of the table asks for. */
export function offsetOf(path: string): number {
  return Number(new URLSearchParams(path.split('?')[1] ?? '').get('offset') ?? 0);
}
