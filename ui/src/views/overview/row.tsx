import type { TableRow } from '../../api/types';
import { bitRate, count, noValue, perSecond, shortCount } from '../../format';
import { href, navigate } from '../../router';
import { memo } from '../../ui/memo';
import { StateLabel } from '../../ui/state';
import type { SortKey } from './query';
import { Sparkline } from './sparkline';

export interface ColumnSpec {
  id: string;
  label: string;
  sort: SortKey | null;
}

export const columns: ColumnSpec[] = [
  { id: 'name', label: 'Direction', sort: 'name' },
  { id: 'state', label: 'State', sort: null },
  { id: 'out', label: 'Delivered', sort: 'bits_out' },
  { id: 'in', label: 'Offered', sort: 'bits_in' },
  { id: 'recent', label: 'Last minute', sort: null },
  { id: 'drops', label: 'Drops', sort: 'drops' },
  { id: 'queued', label: 'Queued', sort: 'queued' },
  { id: 'late', label: 'Late', sort: 'late' },
];

interface Props {
  place: number;
  top: number;
  row: TableRow | null;
  active: boolean;
  onPoint: (place: number) => void;
}

function same(before: Props, after: Props): boolean {
  return (
    before.row === after.row &&
    before.place === after.place &&
    before.top === after.top &&
    before.active === after.active
  );
}

/** One row; rendered again only if its values or its position change. */
export const RowView = memo(function RowView({ place, top, row, active, onPoint }: Props) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on the grid opens the active row
    <div
      id={`row-${place}`}
      role="row"
      aria-rowindex={place + 2}
      aria-selected={active}
      class={`grid-row${active ? ' active' : ''}${row && row.drops_per_s > 0 ? ' dropping' : ''}`}
      style={{ transform: `translateY(${top}px)` }}
      onMouseDown={() => onPoint(place)}
      onClick={() => row && navigate({ view: 'link', name: row.name })}
    >
      {row ? <Cells row={row} /> : <LoadingCells />}
    </div>
  );
}, same);

function Cells({ row }: { row: TableRow }) {
  const late = row.late + row.overload;
  return (
    <>
      <div role="gridcell" class="cell cell-name">
        <a href={href({ view: 'link', name: row.name })} tabIndex={-1}>
          {row.name}
        </a>
      </div>
      <div role="gridcell" class="cell cell-state">
        <StateLabel state={row.state} />
      </div>
      <div role="gridcell" class="cell cell-out num">
        {bitRate(row.bits_out_per_s)}
      </div>
      <div role="gridcell" class="cell cell-in num">
        {bitRate(row.bits_in_per_s)}
      </div>
      <div role="gridcell" class="cell cell-recent">
        <Sparkline values={row.recent} />
      </div>
      <div role="gridcell" class="cell cell-drops num">
        {row.drops_per_s > 0 ? perSecond(row.drops_per_s) : '0'}
      </div>
      <div role="gridcell" class="cell cell-queued num">
        {count(row.queued)}
      </div>
      <div role="gridcell" class="cell cell-late num">
        {shortCount(late)}
      </div>
    </>
  );
}

/** A placeholder row with a single cell, because fast scrolling passes thousands of rows. */
function LoadingCells() {
  return (
    <div role="gridcell" class="cell loading" aria-colspan={columns.length}>
      {noValue}
    </div>
  );
}
