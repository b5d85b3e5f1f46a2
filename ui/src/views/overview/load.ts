import type { OptionValue } from '../../api/types';

const units: Record<string, number> = {
  bit: 1,
  kbit: 1e3,
  mbit: 1e6,
  gbit: 1e9,
  tbit: 1e12,
  bps: 8,
  kbps: 8e3,
  mbps: 8e6,
  gbps: 8e9,
};

/**
 * Returns the rate of an option such as `10mbit` or `fixed:10mbit` in bit/s, or
 * null for models with a varying rate and for unknown options.
 */
export function rateOf(option: OptionValue | undefined): number | null {
  if (typeof option !== 'string') return null;
  const match = /^(?:fixed:)?(?:rate=)?([0-9.]+)\s*([a-z]+)$/.exec(option.trim().toLowerCase());
  const unit = units[match?.[2] ?? ''];
  const value = Number(match?.[1]);
  return unit && Number.isFinite(value) ? value * unit : null;
}
