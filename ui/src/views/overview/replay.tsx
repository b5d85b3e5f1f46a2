import type { Run } from '../../api/types';
import { useDocument } from '../../data/use';
import { micros, percent } from '../../format';

/** Progress of a replay, shown instead of the topology diagram. */
export function ReplayState() {
  const replay = useDocument<Run>('/v1', 1000).value?.replay;
  if (!replay) return null;
  return (
    <section aria-labelledby="replay-title">
      <h2 id="replay-title">Replay</h2>
      {replay.sent !== null && (
        <p>
          <progress value={replay.sent} max={1} aria-label="Sent" />{' '}
          <span class="num">{percent(replay.sent)}</span> sent
        </p>
      )}
      <dl class="options">
        {replay.inputs.map((input) => (
          <div key={input.name}>
            <dt>{input.name}</dt>
            <dd class="num">
              {input.read === null ? 'reading' : `${percent(input.read)} read`}
              {input.behind_max_us > 0 && `, up to ${micros(input.behind_max_us)} behind`}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
