const firstMs = 500;
const mostMs = 10_000;

/**
 * Milliseconds before the next try after `failures` failed ones. Half of it is
 * drawn, so that the tabs of a run do not all return in the same instant.
 */
export function backoffMs(failures: number, random: () => number = Math.random): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.max(0, failures - 1));
  return Math.round(whole / 2 + (whole / 2) * random());
}
