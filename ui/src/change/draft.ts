import type { Change, OptionValue, Preset, Problem, Registry } from '../api/types';
import { draftOf, type OptionDraft, writeOption } from './optiontext';

export type Action = 'set' | 'on' | 'off' | 'pause';
export type Side = 'both' | 'up' | 'down';

/** A part of a change: an action on links. */
export interface Part {
  id: number;
  /** Names and patterns, separated by commas or spaces. */
  targets: string;
  side: Side;
  action: Action;
  options: Record<string, OptionDraft>;
}

export interface When {
  kind: 'now' | 'in' | 'at';
  text: string;
}

export interface Draft {
  parts: Part[];
  when: When;
}

export function newPart(id: number, targets: string): Part {
  return { id, targets, side: 'both', action: 'set', options: {} };
}

/** Returns the names in a part, with the direction if only one is selected. */
export function keysOf(part: Part): string[] {
  return part.targets
    .split(/[\s,]+/)
    .filter((name) => name !== '')
    .map((name) =>
      part.side === 'both' || /\.(up|down)$/.test(name) ? name : `${name}.${part.side}`,
    );
}

/** Returns a message if the draft is incomplete and cannot be validated yet. */
export function missing(draft: Draft): string | null {
  for (const part of draft.parts) {
    if (keysOf(part).length === 0) return 'Name a link, or a pattern such as adsl*.';
    if (part.action === 'set' && Object.keys(part.options).length === 0) {
      return 'Choose a model for at least one option.';
    }
  }
  if (draft.when.kind !== 'now' && draft.when.text.trim() === '')
    return 'Enter when to apply the change.';
  return draft.parts.length === 0 ? 'Add a part.' : null;
}

/** Converts the draft to a change for the API. Later parts override earlier ones. */
export function toChange(registry: Registry, draft: Draft): Change {
  const change: Change = {};
  if (draft.when.kind !== 'now') change[draft.when.kind] = draft.when.text.trim();
  for (const part of draft.parts) {
    if (part.action === 'set') {
      addOptions(registry, change, part);
      continue;
    }
    const before = change[part.action] ?? [];
    change[part.action] = [...(Array.isArray(before) ? before : [before]), ...keysOf(part)];
  }
  return change;
}

function addOptions(registry: Registry, change: Change, part: Part): void {
  const options: Record<string, OptionValue> = {};
  for (const [kind, option] of Object.entries(part.options)) {
    const value = writeOption(registry, kind, option);
    if (value !== null) options[kind] = value;
  }
  change.set ??= {};
  for (const key of keysOf(part)) change.set[key] = { ...change.set[key], ...options };
}

/** Returns the parts of a preset: one if both directions are equal, otherwise one each. */
export function presetParts(registry: Registry, part: Part, preset: Preset, id: number): Part[] {
  const options = (side: 'up' | 'down'): Record<string, OptionDraft> =>
    Object.fromEntries(
      Object.entries(preset[side]).map(([kind, value]) => [kind, draftOf(registry, kind, value)]),
    );
  // If the targets include a direction, only that direction is set.
  const named = /\.(up|down)$/.exec(part.targets.trim())?.[1] as 'up' | 'down' | undefined;
  const side = named ?? (part.side === 'both' ? null : part.side);
  if (side) return [{ ...part, action: 'set', options: options(side) }];
  if (JSON.stringify(preset.up) === JSON.stringify(preset.down)) {
    return [{ ...part, action: 'set', options: options('up') }];
  }
  return [
    { ...part, action: 'set', side: 'up', options: options('up') },
    { ...part, id, action: 'set', side: 'down', options: options('down') },
  ];
}

/** A problem and its position in the form. */
export interface Placed {
  problem: Problem;
  part: number | null;
  option: string | null;
  param: string | null;
  when: boolean;
}

/** Returns the keys of a JSON pointer (RFC 6901). */
export function pointerKeys(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Assigns the problems of a refusal to the form fields that caused them. */
export function place(draft: Draft, problems: Problem[]): Placed[] {
  return problems.flatMap((problem): Placed[] => {
    const keys = problem.pointer ? pointerKeys(problem.pointer) : fieldKeys(draft, problem.field);
    const [field, name, option] = keys;
    if (field === 'in' || field === 'at') {
      return [{ problem, part: null, option: null, param: null, when: true }];
    }
    const parts = draft.parts.filter((part) => isAbout(part, field, name, option));
    if (parts.length === 0)
      return [{ problem, part: null, option: null, param: null, when: false }];
    return parts.map((part) => ({
      problem,
      part: part.id,
      option: field === 'set' ? (option ?? null) : null,
      param: paramOf(part, option, problem.reason),
      when: false,
    }));
  });
}

/** Returns the keys for a problem without pointer, whose field begins with `set.NAME`. */
function fieldKeys(draft: Draft, field: string): string[] {
  const action = field.split('.')[0] ?? '';
  for (const key of draft.parts.flatMap(keysOf)) {
    if (field === `${action}.${key}`) return [action, key];
  }
  return [action];
}

function isAbout(
  part: Part,
  field: string | undefined,
  name: string | undefined,
  option: string | undefined,
): boolean {
  if (part.action !== field) return false;
  if (name === undefined) return true;
  if (field !== 'set') return /^\d+$/.test(name) || keysOf(part).includes(name);
  if (!keysOf(part).includes(name)) return false;
  return option === undefined || part.options[option] !== undefined;
}

/** Returns the parameter named in a reason such as "normal: stddev: 'x' is not …". */
function paramOf(part: Part, option: string | undefined, reason: string): string | null {
  const draft = option === undefined ? undefined : part.options[option];
  if (draft?.mode !== 'model') return null;
  const named = /^([a-z0-9-]+): ([a-z0-9-]+): /.exec(reason);
  if (named?.[1] === draft.model) return named[2] ?? null;
  // A bare value is the only given parameter.
  const given = Object.entries(draft.params).filter(([, value]) => value.trim() !== '');
  return given.length === 1 ? (given[0]?.[0] ?? null) : null;
}
