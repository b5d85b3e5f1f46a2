import { csvOf } from '../../charts/csv';
import { pngOf } from '../../charts/png';
import { type RangeState, spans_s, togglePause, visible } from '../../charts/range';
import { svgOf } from '../../charts/svg';
import type { History } from '../../data/history';
import { duration, runTime } from '../../format';
import { cssColor } from '../../theme';
import { download, fileName } from '../../ui/download';

interface Props {
  name: string;
  history: History;
  state: RangeState;
  onState: (change: (before: RangeState) => RangeState) => void;
  canvases: Map<string, HTMLCanvasElement>;
}

/** Controls for the time range, pause, and export. */
export function ChartTools({ name, history, state, onState, canvases }: Props) {
  const range = visible(state, history.last_s);
  const paused = state.pausedAt_s !== null;
  const title = `${name}, ${runTime(range[0])} to ${runTime(range[1])} of the run`;
  return (
    <div class="toolbar" role="toolbar" aria-label="Charts">
      <label class="field-inline">
        <span>Show</span>
        <select
          value={state.zoom ? '' : state.span_s}
          onChange={(event) => {
            const span_s = Number(event.currentTarget.value);
            if (span_s > 0) onState((before) => ({ ...before, span_s, zoom: null }));
          }}
        >
          {state.zoom && <option value="">zoomed range</option>}
          {spans_s.map((span) => (
            <option key={span} value={span}>
              {span < 60 ? `${span} s` : `${span / 60} min`}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        aria-pressed={paused}
        onClick={() => onState((before) => togglePause(before, history.last_s))}
      >
        {paused ? 'Continue' : 'Pause charts'}
      </button>
      <button
        type="button"
        disabled={!state.zoom}
        onClick={() => onState((before) => ({ ...before, zoom: null }))}
      >
        Reset zoom
      </button>
      <span class="more num">
        {runTime(range[0], 1)} – {runTime(range[1], 1)}
        {paused && ` (paused; ${duration(history.last_s - (state.pausedAt_s ?? 0))} behind)`}
      </span>
      <span class="spacer" />
      <span class="more" id="export-label">
        Export
      </span>
      <button
        type="button"
        class="quiet"
        onClick={() => download(`${fileName(name)}.csv`, csvOf(name, history, range), 'text/csv')}
      >
        CSV
      </button>
      <button
        type="button"
        class="quiet"
        onClick={async () => {
          const blob = await pngOf(title, history, canvases);
          if (blob) download(`${fileName(name)}.png`, blob);
        }}
      >
        PNG
      </button>
      <button
        type="button"
        class="quiet"
        onClick={() =>
          download(`${fileName(name)}.svg`, svgOf(title, history, range, cssColor), 'image/svg+xml')
        }
      >
        SVG
      </button>
    </div>
  );
}
