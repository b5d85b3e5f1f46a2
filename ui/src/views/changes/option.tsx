import type { Model, OptionValue, Param, Registry } from '../../api/types';
import { valueText } from '../../change/describe';
import type { Placed } from '../../change/draft';
import { draftOf, type OptionDraft } from '../../change/optiontext';
import { hintOf, listKinds, modelOf, modelsOf } from '../../change/registry';
import { ProblemText } from './problem';

interface Props {
  registry: Registry;
  kind: string;
  id: string;
  draft: OptionDraft | null;
  current: OptionValue | null;
  /** Whether target links are given; their value is `current`. */
  known: boolean;
  placed: Placed[];
  onDraft: (draft: OptionDraft | null) => void;
}

const writtenOut = '(text)';

/** Input for a link option: unchanged, a model with parameters, or text. */
export function OptionRow(props: Props) {
  const { registry, kind, id, draft, current, known, placed, onDraft } = props;
  const model = draft?.mode === 'model' ? modelOf(registry, kind, draft.model) : null;
  const own = placed.filter(
    ({ param }) => param === null || !model?.params.some(({ name }) => name === param),
  );
  return (
    <div class={draft ? 'option-row set' : 'option-row'}>
      <label class="option-name" for={id}>
        {kind}
      </label>
      <select
        id={id}
        value={draft === null ? '' : draft.mode === 'text' ? writtenOut : draft.model}
        aria-invalid={own.length > 0}
        aria-describedby={`${id}-note`}
        onChange={(event) =>
          onDraft(chosen(registry, kind, event.currentTarget.value, current, draft))
        }
      >
        <option value="">unchanged</option>
        {modelsOf(registry, kind).map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        <option value={writtenOut}>as text …</option>
      </select>
      <span class="current" title="current value">
        {known && (
          <>
            now <code>{current === null ? 'default' : valueText(current)}</code>
          </>
        )}
      </span>
      <div class="option-more">
        <span class="hint" id={`${id}-note`}>
          {model && <span>{model.summary}</span>}
          {own.length > 0 && <ProblemText placed={own} />}
        </span>
        {draft?.mode === 'text' && (
          <textarea
            rows={listKinds.has(kind) ? 3 : 1}
            aria-label={`${kind} as text${listKinds.has(kind) ? '; one value per line' : ''}`}
            spellcheck={false}
            value={draft.text}
            onInput={(event) => onDraft({ mode: 'text', text: event.currentTarget.value })}
          />
        )}
        {model && draft?.mode === 'model' && (
          <Params model={model} id={id} draft={draft} placed={placed} onDraft={onDraft} />
        )}
      </div>
    </div>
  );
}

/** Returns the draft after a selection, with the current values if the model is the current one. */
function chosen(
  registry: Registry,
  kind: string,
  choice: string,
  current: OptionValue | null,
  before: OptionDraft | null,
): OptionDraft | null {
  if (choice === '') return null;
  if (choice === writtenOut) {
    const text = Array.isArray(current) ? current.join('\n') : String(current ?? '');
    return before?.mode === 'text' ? before : { mode: 'text', text };
  }
  const now = current === null ? null : draftOf(registry, kind, current);
  if (now?.mode === 'model' && now.model === choice) return now;
  return { mode: 'model', model: choice, params: {} };
}

interface ParamsProps {
  model: Model;
  id: string;
  draft: Extract<OptionDraft, { mode: 'model' }>;
  placed: Placed[];
  onDraft: (draft: OptionDraft) => void;
}

function Params({ model, id, draft, placed, onDraft }: ParamsProps) {
  if (model.params.length === 0) return null;
  return (
    <div class="params">
      {model.params.map((param) => (
        <ParamField
          key={param.name}
          param={param}
          id={`${id}-${param.name.replace(/\W/g, '-')}`}
          value={draft.params[param.name] ?? ''}
          placed={placed.filter((each) => each.param === param.name)}
          onValue={(value) =>
            onDraft({ ...draft, params: { ...draft.params, [param.name]: value } })
          }
        />
      ))}
    </div>
  );
}

interface ParamProps {
  param: Param;
  id: string;
  value: string;
  placed: Placed[];
  onValue: (value: string) => void;
}

function ParamField({ param, id, value, placed, onValue }: ParamProps) {
  const shared = {
    id,
    value,
    'aria-invalid': placed.length > 0,
    'aria-describedby': `${id}-hint`,
    'aria-required': param.default === null,
  };
  return (
    <div class="field">
      <label for={id}>{param.name}</label>
      {param.choices ? (
        <select {...shared} onChange={(event) => onValue(event.currentTarget.value)}>
          <option value="">{param.default === null ? '' : `${param.default} (default)`}</option>
          {param.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...shared}
          type="text"
          spellcheck={false}
          autoComplete="off"
          placeholder={param.default ?? param.example ?? ''}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
      <span class="hint" id={`${id}-hint`}>
        {placed.length > 0 && <ProblemText placed={placed} />}
        {param.help} <span class="range">{hintOf(param)}</span>
      </span>
    </div>
  );
}
