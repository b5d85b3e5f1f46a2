import { useMemo } from 'preact/hooks';
import type { Direction, Link, TablePage, TableRow } from '../../api/types';
import { useDocument } from '../../data/use';
import { bitRate, noValue, perSecond } from '../../format';
import { href } from '../../router';
import {
  boxHeight,
  boxWidth,
  headRoom,
  layout,
  type Picture,
  portHeight,
  type Topology,
} from './layout';
import { rateOf } from './load';
import { useSmall } from './small';

/** Diagram of a small network: ports, the switch, links with state and load, paths. */
export function TopologyPicture({ topology }: { topology: Topology }) {
  const stamp = JSON.stringify([
    topology.links.map((link) => [link.name, link.match]),
    topology.paths,
    topology.rules,
    topology.ports.map((port) => port.name),
  ]);
  // The layout depends on names only, not on counters, which change constantly.
  const small = useSmall();
  const picture = useMemo(() => layout(topology, small), [stamp, small]);
  const table = useDocument<TablePage>('/v1/table?sort=name&order=asc&offset=0&limit=50', 1000);
  const rows = new Map(table.value?.rows.map((row) => [row.name, row]));
  const lost = new Set(topology.ports.filter((port) => port.lost).map((port) => port.name));
  return (
    <section aria-labelledby="topology-title">
      <h2 id="topology-title">Topology</h2>
      <div class="topology" role="group" aria-label="Topology diagram" tabIndex={0}>
        <svg
          width={picture.width}
          height={picture.height}
          viewBox={`0 0 ${picture.width} ${picture.height}`}
          role="group"
          aria-label={`${topology.ports.length} ports, ${topology.links.length} links, ${topology.paths.length} paths`}
        >
          <Wires picture={picture} />
          <Ports picture={picture} lost={lost} />
          {picture.links.map((box) => {
            const link = topology.links.find(({ name }) => name === box.name);
            return link && <LinkBox key={box.name} x={box.x} y={box.y} link={link} rows={rows} />;
          })}
          <PathNames picture={picture} />
        </svg>
      </div>
    </section>
  );
}

function Wires({ picture }: { picture: Picture }) {
  const [left, right] = picture.bars;
  const paths = picture.ways.filter(({ isPath }) => isPath);
  return (
    <g>
      {picture.portEdges.map((d) => (
        <path key={d} d={d} class="wire" />
      ))}
      {picture.ways.map((way) => (
        <path
          key={way.name}
          d={way.d}
          class={way.isPath ? `way way-${paths.indexOf(way) % 6}` : 'wire'}
        />
      ))}
      {[left, right].map((x) => (
        <g key={x}>
          <rect
            x={x - 4}
            y={headRoom - 4}
            width={8}
            height={picture.height - headRoom}
            rx={3}
            class="switch"
          />
          <text x={x} y={headRoom - 9} class="switch-name">
            switch
          </text>
        </g>
      ))}
    </g>
  );
}

function Ports({ picture, lost }: { picture: Picture; lost: Set<string> }) {
  const letters = Math.floor(picture.portWidth / 7.3);
  return (
    <>
      {picture.ports.map(({ name, x, y }) => (
        <g key={name} class={lost.has(name) ? 'port lost' : 'port'}>
          <rect x={x} y={y} width={picture.portWidth} height={portHeight} rx={4} />
          <text x={x + picture.portWidth / 2} y={y + portHeight / 2 + 4} text-anchor="middle">
            {lost.has(name) && letters > 8
              ? `${cut(name, letters - 5)} (lost)`
              : cut(name, letters)}
          </text>
          <title>{lost.has(name) ? `port ${name} (lost)` : `port ${name}`}</title>
        </g>
      ))}
    </>
  );
}

/** Path names, placed on the first segment of each path, above everything else. */
function PathNames({ picture }: { picture: Picture }) {
  const paths = picture.ways.filter(({ isPath }) => isPath);
  return (
    <>
      {paths.map((way, at) => {
        return (
          <text
            key={way.name}
            x={picture.bars[0] + 10}
            y={way.y - 5}
            class={`way-name way-name-${at % 6}`}
          >
            {cut(way.name, 11)}
            <title>{`path ${way.name}: ${way.via.join(', ')}`}</title>
          </text>
        );
      })}
    </>
  );
}

interface LinkBoxProps {
  x: number;
  y: number;
  link: Link;
  rows: Map<string, TableRow>;
}

function LinkBox({ x, y, link, rows }: LinkBoxProps) {
  const up = rows.get(`${link.name}.up`);
  const down = rows.get(`${link.name}.down`);
  const states = [link.up.state, link.down?.state].filter(Boolean);
  const state = states.find((each) => each !== 'on') ?? 'on';
  const label = [
    `link ${link.name}, ${state}`,
    `up ${bitRate(up?.bits_out_per_s)}, ${perSecond(up?.drops_per_s)} dropped`,
    link.down && `down ${bitRate(down?.bits_out_per_s)}, ${perSecond(down?.drops_per_s)} dropped`,
  ];
  return (
    <a
      href={href({ view: 'link', name: `${link.name}.up` })}
      aria-label={label.filter(Boolean).join('; ')}
    >
      <g class={`link-box link-${state}`} transform={`translate(${x} ${y})`}>
        <rect width={boxWidth} height={boxHeight} rx={5} class="frame" />
        <text x={10} y={19} class="link-name">
          {cut(link.name, state === 'on' ? 22 : 14)}
        </text>
        {state !== 'on' && (
          <text x={boxWidth - 10} y={19} text-anchor="end" class="link-state">
            {state}
          </text>
        )}
        <Load y={38} sign="→" direction={link.up} row={up} />
        {link.down ? (
          <Load y={62} sign="←" direction={link.down} row={down} />
        ) : (
          <text x={10} y={62} class="load-text">
            shared by both directions
          </text>
        )}
      </g>
    </a>
  );
}

interface LoadProps {
  y: number;
  sign: string;
  direction: Direction;
  row: TableRow | undefined;
}

function Load({ y, sign, direction, row }: LoadProps) {
  const rate = rateOf(direction.options['rate']);
  const share = row && rate ? Math.min(1, row.bits_out_per_s / rate) : 0;
  const drops = row && row.drops_per_s > 0;
  return (
    <>
      <text x={10} y={y} class="load-text num">
        {sign} {row ? bitRate(row.bits_out_per_s) : noValue}
      </text>
      {drops ? (
        <text x={boxWidth - 10} y={y} text-anchor="end" class="load-drops num">
          −{perSecond(row.drops_per_s)}
        </text>
      ) : (
        <text x={boxWidth - 10} y={y} text-anchor="end" class="load-of num">
          {rate ? `of ${bitRate(rate)}` : ''}
        </text>
      )}
      <rect x={10} y={y + 4} width={boxWidth - 20} height={4} rx={2} class="load-track" />
      <rect x={10} y={y + 4} width={(boxWidth - 20) * share} height={4} rx={2} class="load-bar" />
    </>
  );
}

function cut(name: string, length: number): string {
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}
