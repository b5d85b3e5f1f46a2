import { useState } from 'preact/hooks';
import type { Fidelity } from '../../api/types';
import { count, micros, percent } from '../../format';

type Buckets = Fidelity['histogram'];

const width = 560;
const height = 200;
const left = 8;
const bottom = 34;

export function bucketLabel({ from_us, to_us }: Buckets[number]): string {
  return to_us === null ? `above ${micros(from_us)}` : `${micros(from_us)} – ${micros(to_us)}`;
}

/** Bars with logarithmic heights, so that a few late frames among a million stay visible. */
export function barHeight(value: number, most: number, full: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.max(2, (Math.log10(value + 1) / Math.log10(most + 1)) * full);
}

export function Histogram({ buckets }: { buckets: Buckets }) {
  const [asTable, setAsTable] = useState(false);
  const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const most = buckets.reduce((max, bucket) => Math.max(max, bucket.count), 0);
  const step = (width - left * 2) / Math.max(1, buckets.length);
  if (total === 0) return <p class="empty">No frames sent yet.</p>;
  return (
    <>
      <svg
        class="histogram"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Histogram of lateness of ${count(total)} frames; see the table for numbers`}
      >
        {buckets.map((bucket, at) => {
          const high = barHeight(bucket.count, most, height - bottom - 18);
          const x = left + at * step;
          return (
            <g key={bucket.from_us}>
              <title>{`${bucketLabel(bucket)}: ${count(bucket.count)}`}</title>
              <rect
                x={x + 1}
                y={height - bottom - high}
                width={Math.max(1, step - 2)}
                height={high}
              />
              <text x={x + step / 2} y={height - bottom - high - 4} text-anchor="middle">
                {bucket.count > 0 ? short(bucket.count) : ''}
              </text>
              <text
                class="edge"
                x={x}
                y={height - bottom + 14}
                text-anchor={at === 0 ? 'start' : 'middle'}
              >
                {at % 2 === 0 ? micros(bucket.from_us).replace(' ', '\u2009') : ''}
              </text>
            </g>
          );
        })}
        <path d={`M${left} ${height - bottom + 0.5}H${width - left}`} class="axis" />
        <text class="edge" x={width / 2} y={height - 3} text-anchor="middle">
          lateness (logarithmic heights)
        </text>
      </svg>
      <button
        type="button"
        class="quiet"
        aria-expanded={asTable}
        onClick={() => setAsTable(!asTable)}
      >
        Table<span class="sr-only"> of lateness</span>
      </button>
      {asTable && (
        <table class="data">
          <caption>Lateness</caption>
          <thead>
            <tr>
              <th scope="col">range</th>
              <th scope="col">frames</th>
              <th scope="col">share</th>
            </tr>
          </thead>
          <tbody>
            {buckets.map((bucket) => (
              <tr key={bucket.from_us}>
                <th scope="row" class="num">
                  {bucketLabel(bucket)}
                </th>
                <td class="num">{count(bucket.count)}</td>
                <td class="num">{percent(bucket.count / total)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function short(value: number): string {
  if (value < 1000) return String(value);
  return value < 1e6 ? `${(value / 1000).toFixed(0)}k` : `${(value / 1e6).toFixed(1)}M`;
}
