import type { Change, ChangeDone, OptionValue } from '../api/types';

/** Formats a time in seconds with nanoseconds, in Longwire's syntax. */
export function timeText(ns: number): string {
  const whole = Math.floor(ns / 1e9);
  const fraction = String(Math.round(ns - whole * 1e9))
    .padStart(9, '0')
    .replace(/0+$/, '');
  return fraction === '' ? `${whole}s` : `${whole}.${fraction}s`;
}

function tomlString(text: string): string {
  // JSON and TOML have the same escapes, except that TOML requires one for DEL.
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}

function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : tomlString(key);
}

function tomlValue(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(
      ([key, each]) => `${tomlKey(key)} = ${tomlValue(each)}`,
    );
    return entries.length > 0 ? `{ ${entries.join(', ')} }` : '{}';
  }
  return tomlString(String(value));
}

/** The fields of a change that `[[at]]` supports. */
const fields = ['set', 'on', 'off', 'pause', 'move', 'outage'] as const;

/** Replaces null, which TOML lacks, with the text of the default. */
function writable(change: Change, defaults: Record<string, string>): Change {
  if (!change.set) return change;
  const set: Record<string, Record<string, OptionValue>> = {};
  for (const [name, options] of Object.entries(change.set)) {
    const values = Object.entries(options).map(([option, value]) => [
      option,
      value ?? defaults[option] ?? 'none',
    ]);
    set[name] = Object.fromEntries(values);
  }
  return { ...change, set };
}

/** Returns whether a scenario can express a change. */
export function isRecordable({ by, change, error }: ChangeDone): boolean {
  return by === 'control' && !error && change.add === undefined && change.remove === undefined;
}

/** Returns the manual changes of a period of a run in chronological order. */
export function recorded(changes: ChangeDone[], from_ns: number, to_ns: number): ChangeDone[] {
  return changes
    .filter((done) => isRecordable(done) && done.at_ns >= from_ns && done.at_ns <= to_ns)
    .sort((a, b) => a.at_ns - b.at_ns);
}

/**
 * Returns a scenario file that repeats these changes, with times relative to
 * `origin_ns`; 0 keeps the times of the run. `defaults` are the options' defaults
 * in `/v1/models`.
 */
export function scenarioOf(
  changes: ChangeDone[],
  origin_ns: number,
  defaults: Record<string, string>,
): string {
  const blocks = changes.map(({ at_ns, change }) => {
    const kept = writable(change, defaults);
    const lines = fields
      .filter((field) => kept[field] !== undefined)
      .map((field) => `${field} = ${tomlValue(kept[field])}`);
    const time = timeText(Math.max(0, at_ns - origin_ns));
    return ['[[at]]', `time = ${tomlString(time)}`, ...lines].join('\n');
  });
  const head = '# Manual changes, recorded by the live view of Longwire. Use with --scenario.';
  return `${[head, ...blocks].join('\n\n')}\n`;
}
