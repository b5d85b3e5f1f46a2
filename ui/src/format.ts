// Numbers and times for display. Widths are constant if possible, so that values
// updated once per second do not shift the layout.

const steps: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** Placeholder for a missing value. */
export const noValue = '–';

function scaled(value: number, unit: string): string {
  const size = Math.abs(value);
  for (const [factor, prefix] of steps) {
    // 999.6 k would round to "1000 k".
    if (size >= factor * 0.9995) return `${significant(value / factor)} ${prefix}${unit}`;
  }
  return unit === '' ? significant(value) : `${significant(value)} ${unit}`;
}

/** Formats three significant digits. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return String(Number(value.toPrecision(2)));
}

export function bitRate(bits_per_s: number | null | undefined): string {
  return isNumber(bits_per_s) ? scaled(bits_per_s, 'bit/s') : noValue;
}

export function byteCount(bytes: number | null | undefined): string {
  return isNumber(bytes) ? scaled(bytes, 'B') : noValue;
}

/** Formats a count with all digits, in groups. */
export function count(value: number | null | undefined): string {
  return isNumber(value) ? Math.round(value).toLocaleString('en') : noValue;
}

/** Formats a count in few characters. */
export function shortCount(value: number | null | undefined): string {
  if (!isNumber(value)) return noValue;
  return Math.abs(value) < 10_000 ? count(value) : scaled(value, '').trimEnd();
}

export function perSecond(value: number | null | undefined): string {
  return isNumber(value) ? `${scaled(value, '').trimEnd()}/s` : noValue;
}

export function micros(us: number | null | undefined): string {
  if (!isNumber(us)) return noValue;
  const size = Math.abs(us);
  if (size >= 999_500) return `${significant(us / 1e6)} s`;
  if (size >= 999.5) return `${significant(us / 1000)} ms`;
  return `${significant(us)} µs`;
}

export function percent(share: number | null | undefined): string {
  if (!isNumber(share)) return noValue;
  const value = share * 100;
  if (value > 0 && value < 0.01) return '< 0.01 %';
  return `${significant(value)} %`;
}

/** Formats a run time: 1:02:03, or with tenths. */
export function runTime(seconds: number | null | undefined, digits = 0): string {
  if (!isNumber(seconds)) return noValue;
  const unit = 10 ** digits;
  const whole = Math.round(Math.max(0, seconds) * unit);
  const second = whole % (60 * unit);
  const minute = Math.floor(whole / (60 * unit)) % 60;
  const hour = Math.floor(whole / (3600 * unit));
  const tail = (second / unit).toFixed(digits).padStart(digits > 0 ? digits + 3 : 2, '0');
  return hour > 0 ? `${hour}:${String(minute).padStart(2, '0')}:${tail}` : `${minute}:${tail}`;
}

/** Formats a duration with spelled-out units, for sentences. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function clock(date: Date): string {
  return date.toLocaleTimeString('en-GB');
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

const reasonNames: Record<string, string> = {
  mtu: 'MTU',
  entry_loss: 'loss at entry',
  queue_full: 'queue full',
  aqm: 'AQM',
  loss: 'loss',
  bit_error: 'bit error',
  content: 'content',
  ttl: 'TTL expired',
  outage: 'outage',
  handover: 'handover',
  port_lost: 'port lost',
};

/** Returns the label of a drop reason or artifact. */
export function reasonName(reason: string): string {
  return reasonNames[reason] ?? reason.replaceAll('_', ' ');
}
