import type { Model, OptionValue, Param, Registry } from '../api/types';
import { modelOf, modelsOf } from './registry';

/** An option in the form: a model with its parameters, or text. */
export type OptionDraft =
  | { mode: 'model'; model: string; params: Record<string, string> }
  | { mode: 'text'; text: string };

const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Returns whether a bare value has this unit, as on the command line. */
export function reads(param: Param, value: string): boolean {
  if (param.choices) return param.choices.includes(value);
  switch (param.unit) {
    case 'rate':
      return /\d(k|m|g|t)?i?(bit|bps)$/i.test(value);
    case 'time':
      return /\d(ns|us|ms|s|min|h)$/.test(value);
    case 'size':
      return /\d[kmg]?b$/i.test(value);
    case 'packets':
      return /^\d+p$/.test(value);
    case 'probability':
    case 'correlation':
      return /^-?[\d.]+%?$/.test(value);
    case 'number':
    case 'whole number':
    case 'real number':
    case 'ratio':
      return number.test(value);
    default:
      return true;
  }
}

/** Parses `model:key=value,value` or a bare value of the first model; null for anything else. */
export function parseOption(registry: Registry, kind: string, text: string): OptionDraft | null {
  const head = /^([a-z][a-z0-9-]*)(?::(.*))?$/s.exec(text);
  const named = head?.[1] ? modelOf(registry, kind, head[1]) : null;
  const model = named ?? modelsOf(registry, kind)[0];
  if (!model) return null;
  const rest = named ? (head?.[2] ?? '') : text;
  const params = parseParams(model, rest);
  return params && { mode: 'model', model: model.name, params };
}

function parseParams(model: Model, text: string): Record<string, string> | null {
  const params: Record<string, string> = {};
  if (text === '') return params;
  for (const piece of text.split(',')) {
    const keyed = /^([a-z][a-z0-9-]*)=(.*)$/s.exec(piece);
    const name = keyed?.[1];
    if (name !== undefined && model.params.some((param) => param.name === name)) {
      params[name] = keyed?.[2] ?? '';
      continue;
    }
    const open = model.params.find(
      (param) => params[param.name] === undefined && reads(param, piece),
    );
    if (!open) return null;
    params[open.name] = piece;
  }
  return params;
}

/** Converts the option to text for the API; null if the form is empty. */
export function writeOption(
  registry: Registry,
  kind: string,
  draft: OptionDraft,
): OptionValue | null {
  if (draft.mode === 'text') {
    const lines = draft.text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (lines.length > 1) return lines;
    return lines[0] ?? null;
  }
  const model = modelOf(registry, kind, draft.model);
  if (!model) return null;
  const given = model.params.filter((param) => (draft.params[param.name] ?? '').trim() !== '');
  if (given.length === 0) return model.name;
  const isFirst = modelsOf(registry, kind)[0]?.name === model.name;
  const only = given[0];
  const value = (param: Param): string => (draft.params[param.name] ?? '').trim();
  // The usual short form, such as 10mbit.
  if (
    isFirst &&
    given.length === 1 &&
    only &&
    only === model.params[0] &&
    reads(only, value(only))
  ) {
    return value(only);
  }
  return `${model.name}:${given.map((param) => writeParam(param, value(param))).join(',')}`;
}

function writeParam(param: Param, value: string): string {
  // A plugin has its own keys, which are entered as text in one field.
  return param.unit === 'any key=value' ? value : `${param.name}=${value}`;
}

/** Returns the draft of a link's value. */
export function draftOf(registry: Registry, kind: string, value: OptionValue): OptionDraft {
  if (Array.isArray(value)) {
    const only = value[0];
    if (value.length !== 1 || only === undefined) return { mode: 'text', text: value.join('\n') };
    return draftOf(registry, kind, only);
  }
  const text = String(value);
  return parseOption(registry, kind, text) ?? { mode: 'text', text };
}
