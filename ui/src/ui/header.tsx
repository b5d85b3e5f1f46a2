import type { Fidelity, StatsEvent } from '../api/types';
import type { Status } from '../data/topics';
import { useDocument, useRun, useTotals } from '../data/use';
import { bitRate, count, micros, percent, perSecond, runTime, shortCount } from '../format';
import { href, type Route } from '../router';
import { useTheme } from '../theme';
import { shade } from './grade';
import { Icon } from './icon';

const entries: { route: Route; label: string; views: Route['view'][] }[] = [
  { route: { view: 'overview' }, label: 'Overview', views: ['overview', 'link', 'flows'] },
  { route: { view: 'fidelity' }, label: 'Fidelity', views: ['fidelity'] },
  { route: { view: 'changes', target: null }, label: 'Changes', views: ['changes'] },
];

const phaseNames: Record<Status['phase'], string> = {
  connecting: 'connecting',
  live: 'live',
  lost: 'no connection',
  ended: 'ended',
  denied: 'refused',
};

export function Header({ route, status }: { route: Route; status: Status }) {
  const totals = useTotals();
  const run = useRun();
  const [theme, toggleTheme] = useTheme();
  return (
    <header>
      <div class="bar">
        <a class="brand" href="#/" aria-label="Longwire overview">
          <Icon name="link" /> Longwire
        </a>
        <nav aria-label="Views">
          {entries.map((entry) => (
            <a
              key={entry.label}
              href={href(entry.route)}
              aria-current={entry.views.includes(route.view) ? 'page' : undefined}
            >
              {entry.label}
            </a>
          ))}
        </nav>
        <span class={`phase phase-${status.phase}`}>
          <span class="dot" aria-hidden="true" />
          {phaseNames[status.phase]} <span class="num">{runTime(totals?.elapsed_s)}</span>
        </span>
        {run?.replay && <span class="tag">replay</span>}
        {run?.may_change === false && !run.replay && <span class="tag">read only</span>}
        <button
          type="button"
          class="quiet"
          onClick={toggleTheme}
          aria-label={`Colours: ${theme}. Change`}
          title={`Colours: ${theme}`}
        >
          <Icon name="theme" /> <span class="wide-only">{theme}</span>
        </button>
      </div>
      <Glance totals={totals} />
    </header>
  );
}

/** The header of every view: state and key figures of the run. */
function Glance({ totals }: { totals: StatsEvent | null }) {
  const fidelity = useDocument<Fidelity>('/v1/fidelity', 1000).value;
  const dropped = sum(totals?.totals.drops);
  const arrived = totals?.totals.packets_in ?? 0;
  const artifacts = fidelity ? sum(fidelity.artifacts) : null;
  return (
    <section class="glance" aria-label="State of the run">
      <dl>
        <Figure
          label="Delivered"
          value={bitRate(totals?.rates?.bits_out_per_s)}
          more={totals ? `${shortCount(totals.totals.packets_out)} frames` : ''}
        />
        <Figure
          label="Dropped"
          value={perSecond(totals?.rates?.drops_per_s)}
          more={totals ? `${shortCount(dropped)}, ${percent(arrived ? dropped / arrived : 0)}` : ''}
        />
        <Figure
          label="Artifacts"
          value={artifacts === null ? '–' : count(artifacts)}
          more={artifacts === 0 ? 'none' : 'by the emulator'}
          alert={artifacts !== null && artifacts > 0}
        />
        <Figure
          label="Lateness p50"
          value={micros(fidelity?.lateness_us.p50)}
          more={`p99 ${micros(fidelity?.lateness_us.p99)}`}
        />
      </dl>
      {fidelity && (
        <p class={`verdict verdict-${shade(fidelity.grade)}`}>
          <Icon name={shade(fidelity.grade) === 'good' ? 'good' : 'bad'} />
          <a href="#/fidelity">{fidelity.verdict}</a>
        </p>
      )}
    </section>
  );
}

function Figure(props: { label: string; value: string; more: string; alert?: boolean }) {
  return (
    <div class={props.alert ? 'figure figure-alert' : 'figure'}>
      <dt>{props.label}</dt>
      <dd class="num">{props.value}</dd>
      <dd class="more num">{props.more}</dd>
    </div>
  );
}

function sum(counts: Record<string, number> | undefined): number {
  return Object.values(counts ?? {}).reduce((total, value) => total + value, 0);
}
