import type { Placed } from '../../change/draft';

/** Problems of one field, with reasons and remedies. */
export function ProblemText({ id, placed }: { id?: string; placed: Placed[] }) {
  return (
    <span class="problem" id={id}>
      {placed.map(({ problem }) => (
        <span key={`${problem.field} ${problem.reason}`}>
          {problem.reason}
          {problem.remedy ? `; ${problem.remedy}` : ''}{' '}
        </span>
      ))}
    </span>
  );
}
