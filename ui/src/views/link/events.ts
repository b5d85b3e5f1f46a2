import type { ChangeDone } from '../../api/types';
import { changeText, targetsOf } from '../../change/describe';
import { concerns } from '../../glob';

export interface LinkEvent {
  at_s: number;
  by: string;
  text: string;
}

const most = 200;

/** Returns the newest changes of a direction in chronological order. */
export function concerning(changes: ChangeDone[], direction: string): LinkEvent[] {
  return changes
    .filter(
      ({ change, error }) => !error && targetsOf(change).some((name) => concerns(name, direction)),
    )
    .slice(-most)
    .map(({ at_ns, by, change }) => ({ at_s: at_ns / 1e9, by, text: changeText(change) }));
}
