import { Component, type ComponentType, h, type VNode } from 'preact';

/** Memoises a component; it is rendered again only if `same` returns false for its props. */
export function memo<P extends object>(
  Inner: ComponentType<P> | ((props: P) => VNode | null),
  same: (before: P, after: P) => boolean,
): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !same(this.props, next);
    }
    override render() {
      return h(Inner as ComponentType<P>, this.props);
    }
  };
}
