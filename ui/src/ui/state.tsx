import type { LinkState } from '../api/types';
import { Icon } from './icon';

/** State of a link: a sign and a word, so that it does not depend on colour. */
export function StateLabel({ state }: { state: LinkState }) {
  return (
    <span class={`state state-${state}`}>
      <Icon name={state} />
      {state}
    </span>
  );
}
