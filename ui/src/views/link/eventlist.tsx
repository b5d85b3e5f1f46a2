import type { RangeState } from '../../charts/range';
import { runTime } from '../../format';
import type { LinkEvent } from './events';

interface Props {
  events: LinkEvent[];
  range: [number, number];
  onShow: (change: (before: RangeState) => RangeState) => void;
}

/** The changes of this direction marked in the charts, each with a button that shows it there. */
export function Events({ events, range, onShow }: Props) {
  const shown = events.filter(({ at_s }) => at_s >= range[0] && at_s <= range[1]);
  const others = events.length - shown.length;
  return (
    <section aria-labelledby="events-title">
      <h2 id="events-title">Changes in this range</h2>
      {shown.length === 0 && <p class="more">None.</p>}
      {shown.length > 0 && (
        <ul class="events">
          {shown.map(({ at_s, by, text }) => (
            <li key={`${at_s} ${text}`}>
              <button
                type="button"
                class="quiet num"
                onClick={() =>
                  onShow((before) => ({ ...before, zoom: [Math.max(0, at_s - 5), at_s + 10] }))
                }
              >
                <span class="sr-only">Show </span>
                {runTime(at_s, 1)}
              </button>
              <span class="tag">{by}</span> <code>{text}</code>
            </li>
          ))}
        </ul>
      )}
      {others > 0 && <p class="more">{others} more outside this range.</p>}
    </section>
  );
}
