import type { Link, Path, Port, Rule } from '../../api/types';

// Positions of ports, links and paths in the diagram. Links are in columns from
// left to right, in the order in which paths cross them; a route that skips a
// column passes between its links.

export const boxWidth = 190;
export const boxHeight = 76;
const rowGap = 22;
const passHeight = 18;
export const portHeight = 40;
const portGap = 20;
/** Space for the names above the bars of the switch. */
export const headRoom = 20;

interface Widths {
  port: number;
  /** Distance between ports and the bars of the switch. */
  side: number;
  /** Distance between bars and links, and between links. */
  column: number;
  margin: number;
}

const wide: Widths = { port: 96, side: 64, column: 74, margin: 10 };
/** One link between two ports fits on a phone. */
const narrow: Widths = { port: 52, side: 10, column: 12, margin: 1 };

export interface Box {
  name: string;
  x: number;
  y: number;
}

export interface Way {
  /** Name of the path, or of the single link. */
  name: string;
  isPath: boolean;
  via: string[];
  d: string;
  /** Position at which the route leaves the left bar. */
  y: number;
}

export interface Picture {
  width: number;
  height: number;
  portWidth: number;
  ports: (Box & { side: 'left' | 'right' })[];
  links: Box[];
  ways: Way[];
  /** x positions of the two bars of the switch. */
  bars: [number, number];
  portEdges: string[];
}

export interface Topology {
  ports: Port[];
  links: Link[];
  paths: Path[];
  rules: Rule[];
}

interface Lane {
  name: string;
  isPath: boolean;
  links: string[];
}

function baseName(direction: string): string {
  return direction.replace(/\.(up|down)$/, '');
}

/** Returns the routes through the network: every path, and every link outside paths. */
export function lanesOf({ links, paths }: Topology): Lane[] {
  const lanes: Lane[] = paths.map((path) => ({
    name: path.name,
    isPath: true,
    links: path.via.map(baseName),
  }));
  const crossed = new Set(lanes.flatMap((lane) => lane.links));
  for (const link of links) {
    if (link.match.length > 0 || !crossed.has(link.name)) {
      lanes.push({ name: link.name, isPath: false, links: [link.name] });
    }
  }
  return lanes;
}

/** Returns the column of each link, to the right of all links that a path crosses before it. */
export function columnsOf(lanes: Lane[]): Map<string, number> {
  const column = new Map<string, number>();
  const links = new Set(lanes.flatMap((lane) => lane.links));
  for (const link of links) column.set(link, 0);
  // Bounded by the number of links, because paths may form a cycle, which has no order.
  for (let round = 0; round < links.size; round += 1) {
    let moved = false;
    for (const lane of lanes) {
      lane.links.forEach((link, at) => {
        const before = lane.links[at - 1];
        if (before === undefined) return;
        const least = (column.get(before) ?? 0) + 1;
        if ((column.get(link) ?? 0) < least && least < links.size) {
          column.set(link, least);
          moved = true;
        }
      });
    }
    if (!moved) break;
  }
  return column;
}

/** Returns the ports by side; ports whose frames cross links upwards are on the left. */
export function sidesOf({ ports, rules }: Topology): { left: string[]; right: string[] } {
  const score = new Map<string, number>();
  for (const { match, leads_to } of rules) {
    const port = /(?:^|,)in-port=([^,]+)/.exec(match)?.[1];
    if (!port) continue;
    score.set(port, (score.get(port) ?? 0) + (leads_to.endsWith('.down') ? -1 : 1));
  }
  const names = ports.map((port) => port.name);
  const left = names.filter((name) => (score.get(name) ?? 0) > 0);
  const right = names.filter((name) => (score.get(name) ?? 0) < 0);
  const open = names.filter((name) => (score.get(name) ?? 0) === 0);
  // Ports without rules are distributed, so that neither side is empty.
  for (const name of open) (left.length <= right.length ? left : right).push(name);
  if (right.length === 0 && left.length > 1) right.push(...left.splice(Math.ceil(left.length / 2)));
  return { left, right };
}

type Cell = { key: string; height: number; order: number; y: number };

function cellsOf(lanes: Lane[], column: Map<string, number>, columns: number): Cell[][] {
  const cells: Cell[][] = Array.from({ length: columns }, () => []);
  const places = new Map<string, number[]>();
  lanes.forEach((lane, at) => {
    const crossed = new Map(lane.links.map((link) => [column.get(link) ?? 0, link]));
    for (let each = 0; each < columns; each += 1) {
      const link = crossed.get(each);
      const key = link ?? `pass ${at} ${each}`;
      const known = places.get(key);
      if (known) {
        known.push(at);
        continue;
      }
      places.set(key, [at]);
      // Links outside paths keep their row, so that their routes are straight.
      const height = link || !lane.isPath ? boxHeight : passHeight;
      cells[each]?.push({ key, height, order: 0, y: 0 });
    }
  });
  for (const cell of cells.flat()) {
    const of = places.get(cell.key) ?? [0];
    cell.order = of.reduce((sum, place) => sum + place, 0) / of.length;
  }
  for (const each of cells) each.sort((a, b) => a.order - b.order);
  return cells;
}

function stack(cells: { height: number; y: number }[], gap: number, height: number): void {
  const used = cells.reduce((sum, cell) => sum + cell.height + gap, -gap);
  let y = (height - used) / 2;
  for (const cell of cells) {
    cell.y = y;
    y += cell.height + gap;
  }
}

function heightOf(cells: { height: number }[], gap: number): number {
  return cells.reduce((sum, cell) => sum + cell.height + gap, -gap);
}

/** Returns a line that is straight through links and curved between them. */
export function curve(points: [number, number][]): string {
  let d = '';
  points.forEach(([x, y], at) => {
    const before = points[at - 1];
    if (!before) d = `M${x} ${y}`;
    else if (before[1] === y) d += `L${x} ${y}`;
    else {
      const middle = (before[0] + x) / 2;
      d += `C${middle} ${before[1]} ${middle} ${y} ${x} ${y}`;
    }
  });
  return d;
}

/** Computes all positions; `small` for a screen of 390 pixels, if the topology fits. */
export function layout(topology: Topology, small = false): Picture {
  const lanes = lanesOf(topology);
  const column = columnsOf(lanes);
  const columns = Math.max(1, ...[...column.values()].map((value) => value + 1));
  const cells = cellsOf(lanes, column, columns);
  const sides = sidesOf(topology);
  const ports = { left: portCells(sides.left), right: portCells(sides.right) };
  const inner = Math.max(
    ...cells.map((each) => heightOf(each, rowGap)),
    heightOf(ports.left, portGap),
    heightOf(ports.right, portGap),
    boxHeight,
  );
  for (const each of cells) stack(each, rowGap, inner);
  stack(ports.left, portGap, inner);
  stack(ports.right, portGap, inner);
  // Path names need space between the bar and the links.
  const widths = small && columns === 1 && topology.paths.length === 0 ? narrow : wide;
  const firstBar = widths.margin + widths.port + widths.side;
  const columnX = (at: number): number =>
    firstBar + widths.column + at * (boxWidth + widths.column);
  const lastBar = columnX(columns - 1) + boxWidth + widths.column;
  const frame = { firstBar, lastBar, columnX, columns, widths };
  return {
    width: lastBar + widths.side + widths.port + widths.margin,
    height: inner + headRoom + wide.margin,
    portWidth: widths.port,
    ports: [
      ...ports.left.map(({ name, y }) => ({
        name,
        x: widths.margin,
        y: y + headRoom,
        side: 'left' as const,
      })),
      ...ports.right.map(({ name, y }) => ({
        name,
        x: lastBar + widths.side,
        y: y + headRoom,
        side: 'right' as const,
      })),
    ],
    links: topology.links.flatMap(({ name }) => {
      const at = column.get(name);
      const cell = cells[at ?? 0]?.find(({ key }) => key === name);
      return at === undefined || !cell ? [] : [{ name, x: columnX(at), y: cell.y + headRoom }];
    }),
    ways: lanes.map((lane, at) => wayOf(lane, at, lanes, cells, frame)),
    bars: [firstBar, lastBar],
    portEdges: portEdges(ports, frame, inner),
  };
}

interface Frame {
  firstBar: number;
  lastBar: number;
  columns: number;
  columnX: (at: number) => number;
  widths: Widths;
}

function portCells(names: string[]): { name: string; height: number; y: number }[] {
  return names.map((name) => ({ name, height: portHeight, y: 0 }));
}

function portEdges(
  ports: { left: { y: number }[]; right: { y: number }[] },
  frame: Frame,
  inner: number,
): string[] {
  const { port, side, margin } = frame.widths;
  const clamp = (y: number): number => Math.max(0, Math.min(inner, y)) + headRoom;
  const edge = (x1: number, x2: number, y: number): string =>
    `M${x1} ${clamp(y)}L${x2} ${clamp(y)}`;
  return [
    ...ports.left.map(({ y }) => edge(margin + port, frame.firstBar, y + portHeight / 2)),
    ...ports.right.map(({ y }) => edge(frame.lastBar, frame.lastBar + side, y + portHeight / 2)),
  ];
}

function wayOf(lane: Lane, at: number, lanes: Lane[], cells: Cell[][], frame: Frame): Way {
  const points: [number, number][] = [];
  cells.forEach((each, column) => {
    const cell = each.find(({ key }) => key === `pass ${at} ${column}` || lane.links.includes(key));
    if (!cell) return;
    // Routes that share a link cross it in parallel.
    const sharing = lanes.filter((other) => other.links.includes(cell.key));
    const place = cell.key.startsWith('pass ') ? 0 : sharing.indexOf(lane);
    const count = cell.key.startsWith('pass ') ? 1 : sharing.length;
    const y = cell.y + (cell.height * (place + 1)) / (count + 1) + headRoom;
    points.push([frame.columnX(column), y], [frame.columnX(column) + boxWidth, y]);
  });
  const first = points[0];
  const last = points[points.length - 1];
  if (first && last) {
    points.unshift([frame.firstBar, first[1]]);
    points.push([frame.lastBar, last[1]]);
  }
  return {
    name: lane.name,
    isPath: lane.isPath,
    via: lane.links,
    d: curve(points),
    y: first?.[1] ?? 0,
  };
}
