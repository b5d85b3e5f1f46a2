/** The clock and timers of the data layer, which tests can replace. */
export interface Timers {
  now(): number;
  after(delay_ms: number, action: () => void): () => void;
}

export const realTimers: Timers = {
  now: () => Date.now(),
  after: (delay_ms, action) => {
    const id = setTimeout(action, delay_ms);
    return () => clearTimeout(id);
  },
};
