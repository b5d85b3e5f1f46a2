import type { History } from '../data/history';
import { runTime } from '../format';
import { type ChartSpec, chartSpecs, type SeriesSpec, scaleEnd } from './spec';
import { indices } from './summary';

const width = 900;
const plotHeight = 150;
const left = 90;
const right = 16;
const headHeight = 28;
const axisHeight = 24;
const titleHeight = 36;
const chartHeight = headHeight + plotHeight + axisHeight;

/** Maps the name of a CSS custom property to its colour. */
export type Colors = (name: string) => string;

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** Returns all charts of a range as an SVG document with editable lines. */
export function svgOf(
  title: string,
  history: History,
  range: [number, number],
  colors: Colors,
): string {
  const height = titleHeight + chartSpecs.length * chartHeight + 8;
  const charts = chartSpecs.map((spec, at) =>
    chartOf(spec, history, range, colors, titleHeight + at * chartHeight),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${colors('--ink')}">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${colors('--paper')}"/>`,
    `<text x="10" y="24" font-size="15" font-weight="600">${escapeXml(title)}</text>`,
    ...charts,
    '</svg>',
    '',
  ].join('\n');
}

/** Returns approximately `about` ticks, at steps of 1, 2 or 5 times a power of ten. */
export function ticks(low: number, high: number, about: number): number[] {
  const raw = (high - low) / about;
  if (!(raw > 0)) return [];
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * ([1, 2, 5, 10].find((each) => each * unit >= raw) ?? 10);
  const values: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) {
    values.push(at * step);
  }
  return values;
}

function chartOf(
  spec: ChartSpec,
  history: History,
  range: [number, number],
  colors: Colors,
  y: number,
): string {
  const [from, to] = indices(history, range);
  const series = spec.series(history);
  const most = scaleEnd(spec, series, from, to);
  const top = y + headHeight;
  const toX = (time: number): number =>
    left + ((time - range[0]) / (range[1] - range[0])) * (width - left - right);
  const toY = (value: number): number => top + plotHeight * (1 - value / most);
  const onScale = (each: SeriesSpec): SeriesSpec => ({
    ...each,
    values: each.values.map((value) => ((value ?? 0) > most ? null : value)),
  });
  const lines = series
    .map(onScale)
    .map(
      (each) =>
        `<path d="${pathOf(each, history, from, to, toX, toY)}" fill="none" stroke="${colors(each.color)}" stroke-width="${each.width}"${each.dash.length > 0 ? ` stroke-dasharray="${each.dash.join(' ')}"` : ''}/>`,
    );
  return [
    `<g><text x="10" y="${y + 18}" font-weight="600">${escapeXml(spec.title)}</text>`,
    legendOf(series, colors, y + 18),
    gridOf(spec, range, most, colors, { top, toX, toY }),
    ...lines,
    '</g>',
  ].join('\n');
}

function gridOf(
  spec: ChartSpec,
  range: [number, number],
  most: number,
  colors: Colors,
  at: { top: number; toX: (time: number) => number; toY: (value: number) => number },
): string {
  const rule = `stroke="${colors('--rule')}"`;
  const bottom = at.top + plotHeight;
  const rows = ticks(0, most, 4).map((value) => {
    const y = at.toY(value).toFixed(1);
    return `<path d="M${left} ${y}H${width - right}" ${rule}/><text x="${left - 8}" y="${Number(y) + 4}" text-anchor="end">${escapeXml(spec.format(value))}</text>`;
  });
  const columns = ticks(range[0], range[1], 8).map((time) => {
    const x = at.toX(time).toFixed(1);
    return `<path d="M${x} ${at.top}V${bottom}" ${rule}/><text x="${x}" y="${bottom + 16}" text-anchor="middle">${runTime(time)}</text>`;
  });
  return [...rows, ...columns].join('');
}

function legendOf(series: SeriesSpec[], colors: Colors, y: number): string {
  return series
    .map((each, at) => {
      const x = 170 + at * 130;
      return `<path d="M${x} ${y - 4}h22" stroke="${colors(each.color)}" stroke-width="${each.width}" stroke-dasharray="${each.dash.join(' ') || 'none'}"/><text x="${x + 28}" y="${y}">${escapeXml(each.label)}</text>`;
    })
    .join('');
}

function pathOf(
  series: SeriesSpec,
  history: History,
  from: number,
  to: number,
  toX: (time: number) => number,
  toY: (value: number) => number,
): string {
  let path = '';
  let pen = false;
  for (let at = from; at < to; at += 1) {
    const value = series.values[at];
    if (typeof value !== 'number') {
      pen = false;
      continue;
    }
    const x = toX(history.elapsed_s[at] ?? 0).toFixed(1);
    const y = toY(value).toFixed(1);
    path += !pen ? `M${x} ${y}` : series.stepped ? `H${x}V${y}` : `L${x} ${y}`;
    pen = true;
  }
  return path;
}
