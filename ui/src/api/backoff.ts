const firstMs = 500;
const mostMs = 10_000;

/**
 * Returns the milliseconds before the next attempt after `failures` failures. Half
 * of the time is random, so that the tabs of a run do not all retry at the same time.
 */
export function backoffMs(failures: number, random: () => number = Math.random): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.max(0, failures - 1));
  return Math.round(whole / 2 + (whole / 2) * random());
}
