import { useEffect, useMemo, useState } from 'preact/hooks';
import type { TablePage } from '../../api/types';
import { useDocument } from '../../data/use';
import { count } from '../../format';
import { href, navigate } from '../../router';
import { Icon } from '../../ui/icon';
import { usePaced } from '../../ui/paced';
import { offsetOf, queryPath, type SortKey, sortedBy, type TableQuery, tablePath } from './query';
import { columns, RowView } from './row';
import { RowCache } from './rows';
import { useScrollWindow } from './scroll';
import { mostWindowRows, moveBy, pageOf, rowHeight } from './window';

/** All directions of all links: searched and sorted by the run, which sends only visible rows. */
export function LinkTable({ canChange }: { canChange: boolean }) {
  const [search, setSearch] = useState('');
  const [order, setOrder] = useState<Omit<TableQuery, 'search'>>({ sort: 'name', order: 'asc' });
  const searched = usePaced(search, 200);
  const query = useMemo(() => ({ ...order, search: searched }), [order, searched]);
  const table = useTable(query);
  return (
    <section aria-labelledby="links-title">
      <div class="toolbar">
        <h2 id="links-title">Links</h2>
        <label class="field-inline">
          <span>Search</span>
          <input
            type="search"
            value={search}
            placeholder="name or pattern, such as adsl1*"
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <p class="more" role="status">
          {table.known &&
            (table.fitting === table.directions
              ? `${count(table.directions)} ${table.directions === 1 ? 'direction' : 'directions'}`
              : `${count(table.fitting)} of ${count(table.directions)} directions`)}
        </p>
        {canChange && (
          <a class="button" href={href({ view: 'changes', target: changeTarget(searched) })}>
            Change {searched.trim() === '' ? 'all' : 'these'}
          </a>
        )}
      </div>
      {table.failure && <p class="problem">{table.failure.message}</p>}
      <Grid table={table} query={query} onSort={(key) => setOrder(sortedBy(query, key))} />
    </section>
  );
}

function changeTarget(search: string): string {
  const word = search.trim();
  if (word === '') return '*';
  return /[*?]/.test(word) ? word : `*${word}*`;
}

type Table = ReturnType<typeof useTable>;

function useTable(query: TableQuery) {
  const cache = useMemo(() => ({ rows: new RowCache(), query }), [query]);
  const [active, setActive] = useState(0);
  // Rows of the previous search are shown until the new ones arrive.
  const [size, setSize] = useState({ directions: 0, fitting: 0, known: false });
  const scroll = useScrollWindow(size.fitting);
  const page = usePaced(pageKey(scroll.window), 80);
  const [offset = 0, limit = 0] = page.split(' ').map(Number);
  const path = tablePath(query, offset, limit);
  const { value, failure, path: answered } = useDocument<TablePage>(path, 1000);
  // Must precede rendering of the rows, which reads the cache in the same pass.
  useMemo(() => {
    if (value && isOf(query, answered)) cache.rows.put(offsetOf(answered), value);
  }, [value, answered, cache, query]);
  useEffect(() => {
    if (!value || !isOf(query, answered)) return;
    const { directions, fitting } = value;
    setSize((before) =>
      before.known && before.fitting === fitting && before.directions === directions
        ? before
        : { directions, fitting, known: true },
    );
  }, [value, answered, query]);
  return { ...size, ...scroll, cache: cache.rows, active, setActive, failure, value };
}

/** Whether a path requests a range of this query's table. */
function isOf(query: TableQuery, path: string | null): path is string {
  return path?.startsWith(`${queryPath(query)}&offset=`) ?? false;
}

function pageKey(window: Parameters<typeof pageOf>[0]): string {
  const { offset, limit } = pageOf(window);
  return `${offset} ${limit}`;
}

function Grid(props: { table: Table; query: TableQuery; onSort: (key: SortKey) => void }) {
  const { table, query } = props;
  const { window } = table;
  const active = Math.min(table.active, Math.max(0, table.fitting - 1));
  const places = Array.from({ length: window.limit }, (_, at) => window.offset + at);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const row = table.cache.at(active);
    if (event.key === 'Enter' && row) {
      navigate({ view: 'link', name: row.name });
      return;
    }
    const next = moveBy(event.key, active, table.fitting, table.viewport);
    if (next === null) return;
    event.preventDefault();
    table.setActive(next);
    table.show(next);
  };
  return (
    <div
      class="grid"
      role="grid"
      aria-label="Link directions. Arrow keys move, Enter opens"
      aria-rowcount={table.fitting + 1}
      aria-colcount={columns.length}
      aria-activedescendant={table.cache.at(active) ? `row-${active}` : undefined}
      tabIndex={0}
      style={{ height: gridHeight(table.fitting) }}
      ref={table.ref}
      onScroll={table.onScroll}
      onKeyDown={onKeyDown}
    >
      <HeadRow query={query} onSort={props.onSort} />
      <div role="rowgroup" class="grid-body" style={{ height: `${window.height}px` }}>
        {places.map((place, at) => (
          <RowView
            // The element of a row that leaves the window is reused for the row that enters.
            key={place % mostWindowRows}
            place={place}
            top={window.top + at * rowHeight}
            row={table.cache.at(place)}
            active={place === active}
            onPoint={table.setActive}
          />
        ))}
      </div>
      {table.known && table.fitting === 0 && <p class="empty">No direction matches.</p>}
    </div>
  );
}

/** Height of the rows, up to most of the screen. */
function gridHeight(rows: number): string {
  return `min(70vh, ${Math.max(3, Math.min(rows, 1000)) * rowHeight + 36}px)`;
}

function HeadRow({ query, onSort }: { query: TableQuery; onSort: (key: SortKey) => void }) {
  return (
    <div role="rowgroup" class="grid-head">
      <div role="row" class="grid-row" aria-rowindex={1}>
        {columns.map(({ id, label, sort }) => (
          <div
            key={id}
            role="columnheader"
            class={`cell cell-${id}`}
            aria-sort={
              sort === null
                ? undefined
                : query.sort !== sort
                  ? 'none'
                  : query.order === 'asc'
                    ? 'ascending'
                    : 'descending'
            }
          >
            {sort === null ? (
              label
            ) : (
              <button type="button" onClick={() => onSort(sort)}>
                {label}
                <Icon name={sortIcon(query, sort)} />
              </button>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function sortIcon(query: TableQuery, sort: SortKey) {
  if (query.sort !== sort) return 'sort';
  return query.order === 'asc' ? 'arrowUp' : 'arrowDown';
}
