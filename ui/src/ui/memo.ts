import { Component, type ComponentType, h, type VNode } from 'preact';

/** A component that is rendered again only when `same` says that its props differ. */
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
