import type { ChangeDone, Scenario } from '../api/types';
import { changeText } from './describe';

/** An event of the timeline. */
export interface TimelineEvent {
  at_s: number;
  text: string;
  by: string;
  done: boolean;
}

const mostPast = 300;

/**
 * Returns past and future changes in chronological order. The list of changes covers
 * the past and the next seconds, the scenario covers later events.
 */
export function timelineOf(
  changes: ChangeDone[],
  scenario: Scenario | null,
  now_s: number,
): TimelineEvent[] {
  const made = changes
    .filter(({ error }) => !error)
    .slice(-mostPast)
    .map(({ at_ns, by, change }) => ({ at_ns, by: by as string, text: changeText(change) }));
  const known = new Set(made.map(({ at_ns, text }) => `${at_ns} ${text}`));
  const coming = (scenario?.events ?? [])
    .map(({ at_ns, change }) => ({ at_ns, by: 'scenario', text: changeText(change) }))
    .filter(({ at_ns, text }) => !known.has(`${at_ns} ${text}`));
  return [...made, ...coming]
    .sort((a, b) => a.at_ns - b.at_ns)
    .map(({ at_ns, by, text }) => ({ at_s: at_ns / 1e9, by, text, done: at_ns / 1e9 <= now_s }));
}

/** Returns the end of the timeline: the last event, plus a margin. */
export function timelineEnd(events: TimelineEvent[], now_s: number): number {
  const last = events[events.length - 1]?.at_s ?? 0;
  return Math.max(10, Math.max(last, now_s) * 1.05);
}
