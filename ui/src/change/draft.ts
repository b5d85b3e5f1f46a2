import type { Change, OptionValue, Preset, Problem, Registry } from '../api/types';
import { draftOf, type OptionDraft, writeOption } from './optiontext';

export type Action = 'set' | 'on' | 'off' | 'pause';
export type Side = 'both' | 'up' | 'down';

/** A part of a change: what is done to which links. */
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

/** The names that a part is about, with their direction when it is one. */
export function keysOf(part: Part): string[] {
  return part.targets
    .split(/[\s,]+/)
    .filter((name) => name !== '')
    .map((name) =>
      part.side === 'both' || /\.(up|down)$/.test(name) ? name : `${name}.${part.side}`,
    );
}

/** What is missing before the run can be asked. */
export function missing(draft: Draft): string | null {
  for (const part of draft.parts) {
    if (keysOf(part).length === 0) return 'Name a link, or a pattern such as adsl*.';
    if (part.action === 'set' && Object.keys(part.options).length === 0) {
      return 'Choose a model of at least one option.';
    }
  }
  if (draft.when.kind !== 'now' && draft.when.text.trim() === '') return 'Say when.';
  return draft.parts.length === 0 ? 'Add a part.' : null;
}

/** The change as the API takes it. Later parts win over earlier ones. */
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

/** The parts of a preset: one when both directions are the same, else one for each. */
export function presetParts(registry: Registry, part: Part, preset: Preset, id: number): Part[] {
  const options = (side: 'up' | 'down'): Record<string, OptionDraft> =>
    Object.fromEntries(
      Object.entries(preset[side]).map(([kind, value]) => [kind, draftOf(registry, kind, value)]),
    );
  // The targets may name a direction already; then only that one is meant.
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

/** Where in the form a problem belongs. */
export interface Placed {
  problem: Problem;
  part: number | null;
  option: string | null;
  param: string | null;
  when: boolean;
}

/** The keys of a JSON pointer (RFC 6901). */
export function pointerKeys(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Leads the problems of a refusal to the fields that caused them. */
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

/** A problem with a name has no pointer; its field begins with `set.NAME`. */
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

/** Reasons begin with model and parameter: "normal: stddev: 'x' is not …". */
function paramOf(part: Part, option: string | undefined, reason: string): string | null {
  const draft = option === undefined ? undefined : part.options[option];
  if (draft?.mode !== 'model') return null;
  const named = /^([a-z0-9-]+): ([a-z0-9-]+): /.exec(reason);
  if (named?.[1] === draft.model) return named[2] ?? null;
  // A plain value is the only parameter that is given.
  const given = Object.entries(draft.params).filter(([, value]) => value.trim() !== '');
  return given.length === 1 ? (given[0]?.[0] ?? null) : null;
}
