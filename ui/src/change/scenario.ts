import type { Change, ChangeDone, OptionValue } from '../api/types';

/** A time in seconds with all its nanoseconds, as Longwire reads it. */
export function timeText(ns: number): string {
  const whole = Math.floor(ns / 1e9);
  const fraction = String(Math.round(ns - whole * 1e9))
    .padStart(9, '0')
    .replace(/0+$/, '');
  return fraction === '' ? `${whole}s` : `${whole}.${fraction}s`;
}

function tomlString(text: string): string {
  // JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
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

/** The fields of a change that `[[at]]` has too. */
const fields = ['set', 'on', 'off', 'pause', 'move', 'outage'] as const;

/** The change with the texts of defaults in place of null, which TOML does not have. */
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

/** Whether a scenario can do what a change did. */
export function isRecordable({ by, change, error }: ChangeDone): boolean {
  return by === 'control' && !error && change.add === undefined && change.remove === undefined;
}

/** The manual changes of a stretch of a run, in order of time. */
export function recorded(changes: ChangeDone[], from_ns: number, to_ns: number): ChangeDone[] {
  return changes
    .filter((done) => isRecordable(done) && done.at_ns >= from_ns && done.at_ns <= to_ns)
    .sort((a, b) => a.at_ns - b.at_ns);
}

/**
 * A scenario file that does these changes again, at times from `origin_ns`:
 * 0 keeps the times of the run. `defaults` are those of options, as `/v1/models` has them.
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
