/** Time as the data layer sees it, so that tests can drive it. */
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
