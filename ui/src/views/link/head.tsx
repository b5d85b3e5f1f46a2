import type { Link } from '../../api/types';
import { valueText } from '../../change/describe';
import { useEnded, useMayChange, useRun } from '../../data/use';
import { byteCount, count } from '../../format';
import { href } from '../../router';
import { StateLabel } from '../../ui/state';
import { StateButtons } from '../changes/statebuttons';

interface Props {
  name: string;
  direction: 'up' | 'down';
  link: Link | null;
  view: 'link' | 'flows';
}

/** Name, state and options of a direction, with links to its other views. */
export function LinkHead({ name, direction, link, view }: Props) {
  const mayChange = useMayChange();
  const ended = useEnded();
  const replays = useRun()?.replay !== undefined;
  const full = `${name}.${direction}`;
  const single = link !== null && !link.down;
  const held = link?.[direction];
  return (
    <div class="link-head">
      <div class="title-row">
        <h1>{single ? name : full}</h1>
        {held && <StateLabel state={held.state} />}
        {!single && (
          <nav aria-label="Direction" class="segments">
            {(['up', 'down'] as const).map((each) => (
              <a
                key={each}
                href={href({ view, name: `${name}.${each}` })}
                aria-current={each === direction ? 'true' : undefined}
              >
                {each}
              </a>
            ))}
          </nav>
        )}
        {!replays && (
          <nav aria-label="Views of this link" class="segments">
            <a
              href={href({ view: 'link', name: full })}
              aria-current={view === 'link' ? 'page' : undefined}
            >
              Charts
            </a>
            <a
              href={href({ view: 'flows', name: full })}
              aria-current={view === 'flows' ? 'page' : undefined}
            >
              Flows
            </a>
          </nav>
        )}
        {mayChange && (
          <div class="actions">
            <StateButtons target={full} state={held?.state ?? null} />
            {!ended && (
              <a class="button" href={href({ view: 'changes', target: full })}>
                Change …
              </a>
            )}
          </div>
        )}
      </div>
      {held && (
        <dl class="options">
          {Object.entries(held.options).map(([option, value]) => (
            <div key={option}>
              <dt>{option}</dt>
              <dd>
                <code>{valueText(value)}</code>
              </dd>
            </div>
          ))}
          {held.queue && (
            <div>
              <dt>queued</dt>
              <dd class="num">
                {count(held.queue.packets)} frames, {byteCount(held.queue.bytes)}
                {held.queue.bytes_limit ? ` of ${byteCount(held.queue.bytes_limit)}` : ''}
                {held.queue.packets_limit ? ` of ${count(held.queue.packets_limit)} frames` : ''}
              </dd>
            </div>
          )}
        </dl>
      )}
    </div>
  );
}
