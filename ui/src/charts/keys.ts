import type uPlot from 'uplot';

export type KeyAction =
  | { kind: 'zoom'; about_s: number; factor: number }
  | { kind: 'pan'; share: number }
  | { kind: 'reset' }
  | { kind: 'moved' };

/** Returns the action of a key in a chart. Cursor keys act immediately, in all charts. */
export function keyAction(event: KeyboardEvent, plot: uPlot): KeyAction | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  switch (event.key) {
    case 'ArrowLeft':
      return event.shiftKey ? { kind: 'pan', share: -0.25 } : move(plot, -1);
    case 'ArrowRight':
      return event.shiftKey ? { kind: 'pan', share: 0.25 } : move(plot, 1);
    case '+':
    case '=':
      return { kind: 'zoom', about_s: centre(plot), factor: 0.5 };
    case '-':
      return { kind: 'zoom', about_s: centre(plot), factor: 2 };
    case '0':
    case 'Escape':
      return { kind: 'reset' };
    default:
      return null;
  }
}

function move(plot: uPlot, by: number): KeyAction {
  const width = plot.over.clientWidth;
  const height = plot.over.clientHeight;
  const left = plot.cursor.left ?? -1;
  const start = left < 0 ? (by < 0 ? width : 0) : left;
  const next = Math.max(0, Math.min(width, start + by * Math.max(1, width / 100)));
  // The third argument, missing from the types, moves the cursor in the other charts too.
  const setCursor = plot.setCursor as (at: uPlot.Cursor, fire: boolean, pass: boolean) => void;
  setCursor({ left: next, top: height / 2 }, true, true);
  return { kind: 'moved' };
}

/** Returns the time at the cursor, or at the middle without a cursor. */
function centre(plot: uPlot): number {
  const left = plot.cursor.left ?? -1;
  return plot.posToVal(left >= 0 ? left : plot.over.clientWidth / 2, 'x');
}
