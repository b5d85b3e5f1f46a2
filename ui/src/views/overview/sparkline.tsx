import { memo } from '../../ui/memo';

const width = 96;
const height = 18;

/** Returns the SVG path of a sparkline: newest value on the right, scale from 0 to the maximum. */
export function sparkPath(values: readonly (number | null)[], slots = 60): string {
  const most = values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
  const scale = most > 0 ? (height - 2) / most : 0;
  const step = width / (slots - 1);
  const start = slots - values.length;
  let path = '';
  let pen = false;
  values.forEach((value, at) => {
    if (value === null) {
      pen = false;
      return;
    }
    const x = ((start + at) * step).toFixed(1);
    const y = (height - 1 - value * scale).toFixed(1);
    path += `${pen ? 'L' : 'M'}${x} ${y}`;
    pen = true;
  });
  return path;
}

interface Props {
  values: readonly (number | null)[];
}

/** The last minute of a direction. Adjacent cells show the numbers. */
export const Sparkline = memo(
  function Sparkline({ values }: Props) {
    return (
      <svg class="spark" width={width} height={height} aria-hidden="true">
        <path d={sparkPath(values)} />
      </svg>
    );
  },
  (before: Props, after: Props) => before.values === after.values,
);
