import type { LinkState } from '../api/types';
import { Icon } from './icon';

/** State of a link, shown by a symbol and a word, independent of colour. */
export function StateLabel({ state }: { state: LinkState }) {
  return (
    <span class={`state state-${state}`}>
      <Icon name={state} />
      {state}
    </span>
  );
}
