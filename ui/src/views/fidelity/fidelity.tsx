import type { Fidelity } from '../../api/types';
import { useDocument } from '../../data/use';
import { count, micros, reasonName, runTime } from '../../format';
import { shade } from '../../ui/grade';
import { Icon } from '../../ui/icon';
import { Loading } from '../../ui/loading';
import { artifactHelp } from './artifacts';
import { Histogram } from './histogram';

/** Fidelity of the run: verdict, lateness, artifacts and pauses. */
export function FidelityView() {
  const { value, failure } = useDocument<Fidelity>('/v1/fidelity', 1000);
  if (!value) {
    return (
      <>
        <h1>Fidelity</h1>
        {failure ? <p class="problem">{failure.message}</p> : <Loading label="Loading fidelity" />}
      </>
    );
  }
  return (
    <>
      <h1>Fidelity</h1>
      <p class={`lead verdict-${shade(value.grade)}`}>
        <Icon name={shade(value.grade) === 'good' ? 'good' : 'bad'} />
        {value.verdict}
      </p>
      <First fidelity={value} />
      <div class="columns">
        <Lateness fidelity={value} />
        <div>
          <Artifacts artifacts={value.artifacts} />
          <Pauses pauses={value.pauses} />
        </div>
      </div>
    </>
  );
}

function First({ fidelity }: { fidelity: Fidelity }) {
  return (
    <section aria-labelledby="first-title">
      <h2 id="first-title">First artifact</h2>
      {fidelity.first ? (
        <p>
          <strong class="num">{runTime(fidelity.first.at_s, 1)}</strong>: {fidelity.first.text}
        </p>
      ) : (
        <p class="more">
          {shade(fidelity.grade) === 'bad'
            ? 'The time of the first artifact is unknown.'
            : 'None so far.'}
        </p>
      )}
    </section>
  );
}

function Lateness({ fidelity }: { fidelity: Fidelity }) {
  const { lateness_us } = fidelity;
  return (
    <section aria-labelledby="lateness-title">
      <h2 id="lateness-title">Lateness</h2>
      <p class="more">Handover minus release, over all frames sent.</p>
      <dl class="options">
        {(['p50', 'p99', 'p999', 'max'] as const).map((key) => (
          <div key={key}>
            <dt>{key === 'p999' ? 'p99.9' : key}</dt>
            <dd class="num">{micros(lateness_us[key])}</dd>
          </div>
        ))}
      </dl>
      <Histogram buckets={fidelity.histogram} />
    </section>
  );
}

function Artifacts({ artifacts }: { artifacts: Record<string, number> }) {
  const kinds = Object.entries(artifacts).filter(([, frames]) => frames > 0);
  return (
    <section aria-labelledby="artifacts-title">
      <h2 id="artifacts-title">Artifacts</h2>
      {kinds.length === 0 ? (
        <p class="more">None: all frames were handled as the models decided.</p>
      ) : (
        <table class="data">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Count</th>
              <th scope="col" class="text">
                Meaning
              </th>
            </tr>
          </thead>
          <tbody>
            {kinds.map(([kind, frames]) => (
              <tr key={kind}>
                <th scope="row">{reasonName(kind)}</th>
                <td class="num">{count(frames)}</td>
                <td class="text">{artifactHelp(kind)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Pauses({ pauses }: { pauses: Fidelity['pauses'] }) {
  return (
    <section aria-labelledby="pauses-title">
      <h2 id="pauses-title">Machine pauses</h2>
      <p class="more">Periods in which a spinning emulator thread did not run.</p>
      <dl class="options">
        <div>
          <dt>count</dt>
          <dd class="num">{count(pauses.count)}</dd>
        </div>
        <div>
          <dt>longest</dt>
          <dd class="num">{micros(pauses.max_us)}</dd>
        </div>
        <div>
          <dt>total</dt>
          <dd class="num">{micros(pauses.total_us)}</dd>
        </div>
      </dl>
    </section>
  );
}
