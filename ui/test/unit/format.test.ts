import { describe, expect, test } from 'vitest';
import * as format from '../../src/format';
import { concerns, fits } from '../../src/glob';
import { href, parseRoute } from '../../src/router';
import { takeToken, tokenOfFragment } from '../../src/session';
import { rateOf } from '../../src/views/overview/load';

describe('numbers', () => {
  test.each([
    [0, '0 bit/s'],
    [999, '999 bit/s'],
    [999.6, '1.00 kbit/s'],
    [9_534_000, '9.53 Mbit/s'],
    [99_960_000, '100 Mbit/s'],
    [999_600_000, '1.00 Gbit/s'],
    [2.5e12, '2.50 Tbit/s'],
    [null, '–'],
    [Number.NaN, '–'],
  ])('%s bit/s', (value, text) => expect(format.bitRate(value)).toBe(text));

  test.each([
    [0.643, '0.64 µs'],
    [66.6, '66.6 µs'],
    [999.6, '1.00 ms'],
    [19_529.7, '19.5 ms'],
    [1_200_000, '1.20 s'],
    [undefined, '–'],
  ])('%s µs', (value, text) => expect(format.micros(value)).toBe(text));

  test.each([
    [0, '0 %'],
    [0.00001, '< 0.01 %'],
    [0.0412, '4.12 %'],
    [1, '100 %'],
  ])('share %s', (value, text) => expect(format.percent(value)).toBe(text));

  test.each([
    [1234, '1,234'],
    [32_600, '32.6 k'],
    [7.06e9, '7.06 G'],
  ])('short %s', (value, text) => expect(format.shortCount(value)).toBe(text));

  test('a rate per second', () => {
    expect(format.perSecond(21)).toBe('21.0/s');
    expect(format.perSecond(12_345)).toBe('12.3 k/s');
  });
});

describe('times', () => {
  test.each([
    [0, 0, '0:00'],
    [59.6, 0, '1:00'],
    [61.25, 1, '1:01.3'],
    [59.96, 1, '1:00.0'],
    [3723, 0, '1:02:03'],
    [5.04, 1, '0:05.0'],
    [-1, 0, '0:00'],
  ])('%s s with %i digits', (seconds, digits, text) =>
    expect(format.runTime(seconds, digits)).toBe(text),
  );

  test('durations', () => {
    expect(format.duration(12.4)).toBe('12 s');
    expect(format.duration(75)).toBe('1 min 15 s');
    expect(format.duration(7300)).toBe('2 h 1 min');
  });
});

describe('name patterns', () => {
  test('match as in ctl', () => {
    expect(fits('adsl*', 'adsl12')).toBe(true);
    expect(fits('adsl?', 'adsl12')).toBe(false);
    expect(fits('a.b', 'axb')).toBe(false);
    expect(fits('*', '')).toBe(true);
  });

  test('select a direction with and without its suffix', () => {
    expect(concerns('adsl1', 'adsl1.up')).toBe(true);
    expect(concerns('adsl1.up', 'adsl1.up')).toBe(true);
    expect(concerns('adsl1.down', 'adsl1.up')).toBe(false);
    expect(concerns('*.up', 'adsl1.up')).toBe(true);
    expect(concerns('*.up', 'adsl1.down')).toBe(false);
    // Patterns match link names, which is also the rule of ctl.
    expect(concerns('adsl1.*', 'adsl1.up')).toBe(false);
    expect(concerns('a.b', 'a.b.up')).toBe(true);
  });
});

describe('routes', () => {
  test.each([
    { view: 'overview' },
    { view: 'link', name: 'adsl7.up' },
    { view: 'link', name: 'a/b #?%.up' },
    { view: 'flows', name: 'x.down' },
    { view: 'fidelity' },
    { view: 'changes', target: null },
    { view: 'changes', target: 'adsl1*.up & more' },
  ] as const)('%o leads there and back', (route) => expect(parseRoute(href(route))).toEqual(route));

  test('other fragments are unknown', () => {
    expect(parseRoute('#/nowhere').view).toBe('unknown');
    expect(parseRoute('#/link/').view).toBe('unknown');
    expect(parseRoute('').view).toBe('overview');
    expect(parseRoute('#/link/%E0%A4').view).toBe('link');
  });
});

describe('token', () => {
  test('is removed from the address', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    } as unknown as Storage;
    let address = '';
    const history = { replaceState: (_: unknown, __: string, to: string) => (address = to) };
    const at = (hash: string) => ({ hash, pathname: '/' }) as Location;
    const asHistory = history as unknown as History;
    expect(takeToken(at('#token=0aF9'), asHistory, storage)).toEqual({
      token: '0aF9',
      given: true,
    });
    expect(address).toBe('/#/');
    expect(takeToken(at('#/changes'), asHistory, storage)).toEqual({ token: '0aF9', given: false });
    expect(tokenOfFragment('#/changes')).toBeNull();
  });
});

describe('the rate of an option', () => {
  test.each([
    ['10mbit', 1e7],
    ['fixed:rate=2.5gbit', 2.5e9],
    ['fixed:64kbit', 64e3],
    ['1mbps', 8e6],
    ['unlimited', null],
    ['trace:lte.csv', null],
    [undefined, null],
  ])('%s', (text, rate) => expect(rateOf(text)).toBe(rate));
});
