/** The displayed part of the recorded time. */
export interface RangeState {
  /** Length of the window, which follows the run. */
  span_s: number;
  /** Time at which the window is paused, or null while it follows. */
  pausedAt_s: number | null;
  /** Range selected by zooming, or null. */
  zoom: [number, number] | null;
}

export const spans_s = [30, 60, 120, 300, 600] as const;
export const startRange: RangeState = { span_s: 60, pausedAt_s: null, zoom: null };
const least_s = 0.5;

/** Returns the displayed range for a state and the time of the newest sample. */
export function visible(state: RangeState, last_s: number): [number, number] {
  if (state.zoom) return state.zoom;
  const end = Math.max(state.pausedAt_s ?? last_s, Math.min(state.span_s, 10));
  return [Math.max(0, end - state.span_s), end];
}

export function zoomTo(state: RangeState, from_s: number, to_s: number): RangeState {
  const low = Math.max(0, Math.min(from_s, to_s));
  const high = Math.max(from_s, to_s);
  if (high - low < least_s) return state;
  return { ...state, zoom: [low, high] };
}

/** Zooms around a time; a factor below 1 zooms in. */
export function zoomBy(
  state: RangeState,
  last_s: number,
  about_s: number,
  factor: number,
): RangeState {
  const [from, to] = visible(state, last_s);
  const width = Math.max(least_s, Math.min(600, (to - from) * factor));
  const share = to > from ? (about_s - from) / (to - from) : 0.5;
  const low = Math.max(0, about_s - width * share);
  return { ...state, zoom: [low, low + width] };
}

export function pan(state: RangeState, last_s: number, share: number): RangeState {
  const [from, to] = visible(state, last_s);
  const by = (to - from) * share;
  const low = Math.max(0, Math.min(last_s - (to - from) / 2, from + by));
  return { ...state, zoom: [low, low + to - from] };
}

export function togglePause(state: RangeState, last_s: number): RangeState {
  if (state.pausedAt_s !== null) return { ...state, pausedAt_s: null, zoom: null };
  return { ...state, pausedAt_s: last_s };
}
