import type { Model, Param, Registry } from '../api/types';

/** The link options that a change can set, in the order in which they apply to a frame. */
export const optionKinds = [
  'rate',
  'delay',
  'loss',
  'queue',
  'framing',
  'corrupt',
  'duplicate',
  'reorder',
  'order',
  'mtu',
  'rewrite',
] as const;

export type OptionKind = (typeof optionKinds)[number];

/** Repeatable options. */
export const listKinds: ReadonlySet<string> = new Set(['loss', 'rewrite']);

export function modelsOf(registry: Registry, kind: string): Model[] {
  return registry.models.filter((model) => model.kind === kind);
}

export function modelOf(registry: Registry, kind: string, name: string): Model | null {
  return registry.models.find((model) => model.kind === kind && model.name === name) ?? null;
}

/** Ranges of units with the same range for all parameters. */
const unitRanges: Record<string, string> = {
  probability: '0 % to 100 %',
  ratio: '0 to 1',
  correlation: 'above −100 % and below 100 %',
};

/** Returns a short hint for a field: unit, range, default. */
export function hintOf(param: Param): string {
  const parts: string[] = [];
  if (!param.choices) {
    parts.push(param.example ? `${param.unit}, such as ${param.example}` : param.unit);
  }
  const range = rangeOf(param);
  if (range) parts.push(range);
  if (param.default !== null) parts.push(`default ${param.default}`);
  return parts.join('; ');
}

export function rangeOf({ min, max, unit }: Param): string | null {
  const hasMin = min !== undefined && min !== null;
  const hasMax = max !== undefined && max !== null;
  if (hasMin && hasMax) return `${min} to ${max}`;
  if (hasMin) return `at least ${min}`;
  if (hasMax) return `at most ${max}`;
  return unitRanges[unit] ?? null;
}
