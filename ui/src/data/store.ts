import { useEffect, useState } from 'preact/hooks';

/** A value of this tab, shared by its views and kept across them. */
export class Store<T> {
  private value: T;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly key: string,
    start: T,
  ) {
    this.value = this.load() ?? start;
  }

  get(): T {
    return this.value;
  }

  set(value: T): void {
    this.value = value;
    try {
      sessionStorage.setItem(this.key, JSON.stringify(value));
    } catch {
      // If the storage is full, a reload loses the value.
    }
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private load(): T | null {
    try {
      return JSON.parse(sessionStorage.getItem(this.key) ?? 'null') as T | null;
    } catch {
      return null;
    }
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.get());
  useEffect(() => {
    setValue(store.get());
    return store.subscribe(() => setValue(store.get()));
  }, [store]);
  return value;
}
