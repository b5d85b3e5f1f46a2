import type { History } from '../data/history';
import { cssColor } from '../theme';
import { chartSpecs } from './spec';

const headHeight = 26;
const titleHeight = 34;

/** Returns an image of all charts as shown, with titles and legends. */
export function pngOf(
  title: string,
  history: History,
  canvases: Map<string, HTMLCanvasElement>,
): Promise<Blob | null> {
  const shown = chartSpecs.filter(({ id }) => canvases.has(id));
  const scale = devicePixelRatio;
  const width = Math.max(...[...canvases.values()].map((canvas) => canvas.width));
  const heights = shown.map(({ id }) => canvases.get(id)?.height ?? 0);
  const sheet = document.createElement('canvas');
  sheet.width = width;
  sheet.height = heights.reduce(
    (sum, height) => sum + height + headHeight * scale,
    titleHeight * scale,
  );
  const ink = sheet.getContext('2d');
  if (!ink) return Promise.resolve(null);
  ink.fillStyle = cssColor('--paper');
  ink.fillRect(0, 0, sheet.width, sheet.height);
  ink.fillStyle = cssColor('--ink');
  ink.font = `600 ${15 * scale}px system-ui, sans-serif`;
  ink.fillText(title, 10 * scale, 23 * scale);
  let y = titleHeight * scale;
  for (const spec of shown) {
    drawHead(ink, spec, history, y, scale);
    y += headHeight * scale;
    const canvas = canvases.get(spec.id);
    if (!canvas) continue;
    ink.drawImage(canvas, 0, y);
    y += canvas.height;
  }
  return new Promise((resolve) => sheet.toBlob(resolve, 'image/png'));
}

function drawHead(
  ink: CanvasRenderingContext2D,
  spec: (typeof chartSpecs)[number],
  history: History,
  y: number,
  scale: number,
): void {
  const base = y + 18 * scale;
  ink.setLineDash([]);
  ink.fillStyle = cssColor('--ink');
  ink.font = `600 ${13 * scale}px system-ui, sans-serif`;
  ink.fillText(spec.title, 10 * scale, base);
  let x = 10 * scale + ink.measureText(spec.title).width + 18 * scale;
  ink.font = `${12 * scale}px system-ui, sans-serif`;
  for (const series of spec.series(history)) {
    ink.strokeStyle = cssColor(series.color);
    ink.lineWidth = series.width * scale;
    ink.setLineDash(series.dash.map((part) => part * scale));
    ink.beginPath();
    ink.moveTo(x, base - 4 * scale);
    ink.lineTo(x + 22 * scale, base - 4 * scale);
    ink.stroke();
    ink.fillText(series.label, x + 28 * scale, base);
    x += ink.measureText(series.label).width + 46 * scale;
  }
}
