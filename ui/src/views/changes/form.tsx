import type { Registry } from '../../api/types';
import { newPart, type Placed, toChange } from '../../change/draft';
import { useConnection, useDocument } from '../../data/use';
import { count, runTime } from '../../format';
import { Loading } from '../../ui/loading';
import { PartFields } from './part';
import { ProblemText } from './problem';
import { type Form, useForm, type Verdict } from './useform';

/** The form for a change: parts, a time, and the run's validation result. */
export function ChangeForm({ target }: { target: string }) {
  const { value, failure } = useDocument<Registry>('/v1/models', 0);
  return (
    <section aria-labelledby="form-title">
      <h2 id="form-title">Make a change</h2>
      {failure && <p class="problem">{failure.message}</p>}
      {value ? <Fields registry={value} target={target} /> : <Loading label="Loading models" />}
    </section>
  );
}

function Fields({ registry, target }: { registry: Registry; target: string }) {
  const { client } = useConnection();
  const form = useForm(client, registry, target);
  const { draft, verdict } = form;
  const placed = verdict.kind === 'refused' ? verdict.placed : [];
  return (
    <form
      class="change-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (verdict.kind === 'fits') void form.apply();
      }}
    >
      {draft.parts.map((part, at) => (
        <PartFields
          key={part.id}
          registry={registry}
          form={form}
          part={part}
          number={at + 1}
          placed={placed.filter((each) => each.part === part.id)}
        />
      ))}
      <div class="toolbar">
        <button
          type="button"
          onClick={() =>
            form.changed((before) => ({
              ...before,
              parts: [...before.parts, newPart(form.newId(), '')],
            }))
          }
        >
          Add a part
        </button>
        <span class="more">All parts apply together, or none does.</span>
      </div>
      <When form={form} problem={placed.find((each) => each.when)} />
      <div class="toolbar apply">
        <button type="submit" class="primary" disabled={verdict.kind !== 'fits'}>
          Apply
        </button>
        <div role="status" class="verdict-line">
          <VerdictText verdict={verdict} />
        </div>
      </div>
      <details>
        <summary>As JSON, for POST /v1/changes</summary>
        <pre role="group" aria-label="The change as JSON" tabIndex={0}>
          {JSON.stringify(toChange(registry, draft), null, 2)}
        </pre>
      </details>
    </form>
  );
}

function When({ form, problem }: { form: Form; problem: Placed | undefined }) {
  const { when } = form.draft;
  const set = (change: Partial<typeof when>): void =>
    form.changed((before) => ({ ...before, when: { ...before.when, ...change } }));
  return (
    <fieldset class="when">
      <legend>When</legend>
      {(['now', 'in', 'at'] as const).map((kind) => (
        <label key={kind} class="check">
          <input
            type="radio"
            name="when"
            checked={when.kind === kind}
            onChange={() => set({ kind, text: kind === 'now' ? '' : when.text })}
          />
          {{ now: 'now', in: 'in …', at: 'at …' }[kind]}
        </label>
      ))}
      {when.kind !== 'now' && (
        <span class="field">
          <input
            type="text"
            aria-label={when.kind === 'in' ? 'Time from now' : 'Time since the start of the run'}
            placeholder={when.kind === 'in' ? '2s' : '1min'}
            value={when.text}
            aria-invalid={problem !== undefined}
            aria-describedby={problem ? 'when-problem' : undefined}
            onInput={(event) => set({ text: event.currentTarget.value })}
          />
          {problem && <ProblemText id="when-problem" placed={[problem]} />}
        </span>
      )}
    </fieldset>
  );
}

function VerdictText({ verdict }: { verdict: Verdict }) {
  switch (verdict.kind) {
    case 'open':
      return <span class="more">{verdict.text}</span>;
    case 'checking':
      return <span class="more">Validating …</span>;
    case 'refused': {
      const homeless = verdict.placed.filter((each) => each.part === null && !each.when);
      if (verdict.placed.length === 0) return <span class="problem">{verdict.text}</span>;
      return (
        <span class="problem">
          Invalid change{homeless.length > 0 ? ': ' : '; see the fields.'}
          {homeless.length > 0 && <ProblemText placed={homeless} />}
        </span>
      );
    }
    case 'fits':
      return (
        <span class="fits">
          Valid; changes {count(verdict.changed.links)}{' '}
          {verdict.changed.links === 1 ? 'link' : 'links'}.
          <Warnings verdict={verdict} />
        </span>
      );
    case 'done':
      return (
        <span class="fits">
          Done: {count(verdict.changed.links)} {verdict.changed.links === 1 ? 'link' : 'links'}, at{' '}
          {runTime(verdict.changed.at_ns / 1e9, 1)}.
        </span>
      );
  }
}

function Warnings({ verdict }: { verdict: Extract<Verdict, { kind: 'fits' }> }) {
  return (
    <>
      {verdict.changed.warnings.map((warning) => (
        <span key={warning.field} class="warning">
          {' '}
          {warning.field}: {warning.reason}. {warning.remedy}
        </span>
      ))}
    </>
  );
}
