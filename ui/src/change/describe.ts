import type { Change, Names, OptionValue } from '../api/types';

export function namesOf(names: Names | undefined): string[] {
  if (names === undefined) return [];
  return Array.isArray(names) ? names : [names];
}

export function valueText(value: OptionValue | null): string {
  if (value === null) return 'default';
  return Array.isArray(value) ? value.join(' + ') || 'none' : String(value);
}

/** Returns the names and patterns in a change. */
export function targetsOf(change: Change): string[] {
  return [
    ...Object.keys(change.set ?? {}),
    ...namesOf(change.on),
    ...namesOf(change.off),
    ...namesOf(change.pause),
    ...Object.keys(change.move ?? {}),
    ...namesOf(change.remove),
    ...Object.keys(change.ramp ?? {}),
  ];
}

/** Describes a change, such as "adsl1: rate=2mbit; adsl2 off". */
export function changeText(change: Change): string {
  const parts: string[] = [];
  for (const [name, options] of Object.entries(change.set ?? {})) {
    const texts = Object.entries(options).map(([key, value]) => `${key}=${valueText(value)}`);
    parts.push(`${name}: ${texts.join(' ')}`);
  }
  for (const state of ['on', 'off', 'pause'] as const) {
    const names = namesOf(change[state]);
    if (names.length > 0) parts.push(`${state} ${names.join(', ')}`);
  }
  for (const [from, to] of Object.entries(change.move ?? {})) parts.push(`move ${from} to ${to}`);
  for (const [name, ramp] of Object.entries(change.ramp ?? {})) {
    parts.push(
      `${name}: ${ramp['option']} from ${ramp['from']} to ${ramp['to']} in ${ramp['time']}`,
    );
  }
  if (change.add !== undefined) parts.push('add links or paths');
  const removed = namesOf(change.remove);
  if (removed.length > 0) parts.push(`remove ${removed.join(', ')}`);
  return parts.join('; ') || 'nothing';
}
