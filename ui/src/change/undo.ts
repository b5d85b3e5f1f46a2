import type { Change, Link, OptionValue } from '../api/types';
import { concerns } from '../glob';
import { changeText, namesOf, targetsOf } from './describe';

/** A change that can be undone. */
export interface UndoEntry {
  at_ns: number;
  text: string;
  undo: Change;
}

type Side = 'up' | 'down';
const sides: Side[] = ['up', 'down'];

function directionsOf(links: Link[]): { name: string; link: Link; side: Side }[] {
  return links.flatMap((link) =>
    sides
      .filter((side) => link[side])
      .map((side) => ({ name: `${link.name}.${side}`, link, side })),
  );
}

/**
 * Returns the change that restores the links' options and states in `before`, or
 * null if the change has other effects.
 *
 * An option without a previous value is set to null, which restores its default.
 */
export function undoOf(change: Change, before: Link[]): Change | null {
  if (change.add !== undefined || change.remove !== undefined || change.move !== undefined) {
    return null;
  }
  const undo: Change = {};
  const set: Record<string, Record<string, OptionValue | null>> = {};
  for (const { name, link, side } of directionsOf(before)) {
    const direction = link[side];
    if (!direction) continue;
    for (const [key, options] of Object.entries(change.set ?? {})) {
      if (!concerns(key, name)) continue;
      for (const option of Object.keys(options)) {
        set[name] = { ...set[name], [option]: direction.options[option] ?? null };
      }
    }
    const stateNames = [change.on, change.off, change.pause].flatMap(namesOf);
    if (stateNames.some((key) => concerns(key, name))) {
      const field = direction.state === 'paused' ? 'pause' : direction.state;
      undo[field] = [...namesOf(undo[field]), name];
    }
  }
  if (Object.keys(set).length > 0) undo.set = set;
  return targetsOf(undo).length > 0 ? undo : null;
}

const mostEntries = 20;
const mostBytes = 200_000;

/** Adds an entry; keeps the newest entries, bounded in number and size. */
export function pushEntry(entries: UndoEntry[], change: Change, at_ns: number, undo: Change) {
  const added = [{ at_ns, text: changeText(change), undo }, ...entries].slice(0, mostEntries);
  let bytes = 0;
  return added.filter((entry) => {
    bytes += JSON.stringify(entry.undo).length;
    return bytes <= mostBytes;
  });
}
