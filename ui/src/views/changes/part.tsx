import type { Link, Links, Options, Registry, TablePage } from '../../api/types';
import {
  type Action,
  keysOf,
  type Part,
  type Placed,
  presetParts,
  type Side,
} from '../../change/draft';
import { optionKinds } from '../../change/registry';
import { useDocument } from '../../data/use';
import { count } from '../../format';
import { concerns } from '../../glob';
import { usePaced } from '../../ui/paced';
import { OptionRow } from './option';
import { ProblemText } from './problem';
import type { Form } from './useform';

const actionNames: Record<Action, string> = {
  set: 'set options',
  on: 'turn on',
  pause: 'pause: hold frames',
  off: 'turn off: drop frames',
};

interface Props {
  registry: Registry;
  form: Form;
  part: Part;
  number: number;
  placed: Placed[];
}

/** One part of a change: links and an action. */
export function PartFields({ registry, form, part, number, placed }: Props) {
  const own = placed.filter((each) => each.option === null);
  const current = useCurrent(part);
  const id = `part-${part.id}`;
  const named = isNamed(part);
  return (
    <fieldset class="part">
      <legend>{form.draft.parts.length > 1 ? `Part ${number}` : 'Links and options'}</legend>
      <div class="fields">
        <Targets part={part} form={form} id={id} placed={own} fitting={current.fitting} />
        <label class="field">
          <span>Direction</span>
          <select
            value={named ? 'both' : part.side}
            disabled={named}
            onChange={(event) => {
              const side = event.currentTarget.value as Side;
              form.setPart(part.id, (before) => ({ ...before, side }));
            }}
          >
            <option value="both">{named ? 'as named' : 'both'}</option>
            <option value="up">up</option>
            <option value="down">down</option>
          </select>
        </label>
        <label class="field">
          <span>Action</span>
          <select
            value={part.action}
            onChange={(event) => {
              const action = event.currentTarget.value as Action;
              form.setPart(part.id, (before) => ({ ...before, action }));
            }}
          >
            {Object.entries(actionNames).map(([action, name]) => (
              <option key={action} value={action}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {part.action === 'set' && <PresetField registry={registry} form={form} part={part} />}
        {form.draft.parts.length > 1 && (
          <button
            type="button"
            class="quiet"
            onClick={() =>
              form.changed((before) => ({
                ...before,
                parts: before.parts.filter((each) => each.id !== part.id),
              }))
            }
          >
            Remove part {number}
          </button>
        )}
      </div>
      {part.action === 'set' && (
        <div class="option-rows">
          {optionKinds.map((kind) => (
            <OptionRow
              key={kind}
              registry={registry}
              kind={kind}
              id={`${id}-${kind}`}
              draft={part.options[kind] ?? null}
              current={current.options(kind)}
              known={current.known}
              placed={placed.filter((each) => each.option === kind)}
              onDraft={(draft) =>
                form.setPart(part.id, (before) => {
                  const { [kind]: _, ...others } = before.options;
                  return { ...before, options: draft ? { ...others, [kind]: draft } : others };
                })
              }
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}

/** Whether every target name includes its direction. */
function isNamed(part: Part): boolean {
  const names = part.targets.split(/[\s,]+/).filter((name) => name !== '');
  return names.length > 0 && names.every((name) => /\.(up|down)$/.test(name));
}

/** The current state of the directions selected by a part; for patterns, the first 50 links. */
function useCurrent(part: Part) {
  const keys = usePaced(keysOf(part).join(' '), 300);
  const first = keys.split(' ')[0] ?? '';
  const pattern = first.replace(/\.(up|down)$/, '');
  const path = first === '' ? null : `/v1/links?match=${encodeURIComponent(pattern)}&limit=50`;
  const links = useDocument<Links>(path, 5000).value?.links ?? [];
  const match = /\.(up|down)$/.test(first) ? first : `${first}.*`;
  const table = useDocument<TablePage>(
    first === '' ? null : `/v1/table?match=${encodeURIComponent(match)}&limit=1`,
    5000,
  ).value;
  const directions = directionOptions(links, first);
  return {
    known: directions.length > 0,
    fitting: table && keys.split(' ').length === 1 ? table.fitting : null,
    options: (kind: string): Options[string] | 'differs' | null => {
      const values = new Set(directions.map((options) => JSON.stringify(options[kind] ?? null)));
      if (values.size > 1) return 'differs';
      return (directions[0]?.[kind] as Options[string] | undefined) ?? null;
    },
  };
}

function directionOptions(links: Link[], key: string): Options[] {
  return links.flatMap((link) =>
    (['up', 'down'] as const).flatMap((side) => {
      const direction = link[side];
      return direction && concerns(key, `${link.name}.${side}`) ? [direction.options] : [];
    }),
  );
}

interface TargetsProps {
  part: Part;
  form: Form;
  id: string;
  placed: Placed[];
  fitting: number | null;
}

function Targets({ part, form, id, placed, fitting }: TargetsProps) {
  const typed = usePaced(part.targets.split(/[\s,]+/).at(-1) ?? '', 300);
  const path = /[*?]/.test(typed)
    ? null
    : `/v1/links?match=${encodeURIComponent(typed === '' ? '*' : `*${typed.replace(/\.(up|down)$/, '')}*`)}&limit=20`;
  const names = useDocument<Links>(path, 0).value?.links.map(({ name }) => name) ?? [];
  return (
    <label class="field wide">
      <span>Links</span>
      <input
        type="text"
        list={`${id}-names`}
        value={part.targets}
        placeholder="names or patterns, such as adsl7, adsl1*"
        autoComplete="off"
        spellcheck={false}
        aria-invalid={placed.length > 0}
        aria-describedby={`${id}-hint`}
        onInput={(event) => {
          const targets = event.currentTarget.value;
          form.setPart(part.id, (before) => ({ ...before, targets }));
        }}
      />
      <datalist id={`${id}-names`}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <span class="hint" id={`${id}-hint`}>
        {fitting !== null &&
          `${count(fitting)} ${fitting === 1 ? 'direction matches' : 'directions match'}. `}
        {placed.length > 0 && <ProblemText placed={placed} />}
      </span>
    </label>
  );
}

function PresetField({ registry, form, part }: { registry: Registry; form: Form; part: Part }) {
  return (
    <label class="field">
      <span>Preset</span>
      <select
        value=""
        onChange={(event) => {
          const preset = registry.presets.find(({ name }) => name === event.currentTarget.value);
          event.currentTarget.value = '';
          if (!preset) return;
          form.changed((before) => ({
            ...before,
            parts: before.parts.flatMap((each) =>
              each.id === part.id ? presetParts(registry, each, preset, form.newId()) : [each],
            ),
          }));
        }}
      >
        <option value="">choose …</option>
        {registry.presets.map(({ name, summary }) => (
          <option key={name} value={name} title={summary}>
            {name}: {summary.split(':')[0]}
          </option>
        ))}
      </select>
    </label>
  );
}
