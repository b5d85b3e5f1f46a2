import { describe, expect, test } from 'vitest';
import type { ChangeDone, Direction, Link, Options, Registry } from '../../src/api/types';
import { changeText } from '../../src/change/describe';
import {
  type Draft,
  missing,
  newPart,
  place,
  pointerKeys,
  presetParts,
  toChange,
} from '../../src/change/draft';
import { timelineEnd, timelineOf } from '../../src/change/events';
import { draftOf, parseOption, writeOption } from '../../src/change/optiontext';
import { hintOf } from '../../src/change/registry';
import { recorded, scenarioOf, timeText } from '../../src/change/scenario';
import { pushEntry, type UndoEntry, undoOf } from '../../src/change/undo';

const time = { unit: 'time', help: '', example: '20ms' };
const registry: Registry = {
  options: [],
  models: [
    {
      kind: 'rate',
      name: 'fixed',
      summary: '',
      params: [{ name: 'rate', unit: 'rate', default: null, help: '' }],
    },
    { kind: 'rate', name: 'unlimited', summary: '', params: [] },
    {
      kind: 'delay',
      name: 'constant',
      summary: '',
      params: [{ ...time, name: 'delay', default: null }],
    },
    {
      kind: 'delay',
      name: 'normal',
      summary: '',
      params: [
        { ...time, name: 'mean', default: null },
        { ...time, name: 'stddev', default: null },
        { name: 'correlation', unit: 'correlation', default: '0%', help: '' },
      ],
    },
    {
      kind: 'queue',
      name: 'tail-drop',
      summary: '',
      params: [
        { name: 'packets', unit: 'packets', default: null, help: '' },
        { name: 'bytes', unit: 'size', default: null, help: '' },
      ],
    },
    {
      kind: 'loss',
      name: 'packet',
      summary: '',
      params: [{ name: 'rate', unit: 'probability', default: null, help: '' }],
    },
    {
      kind: 'rate',
      name: 'plugin',
      summary: '',
      params: [
        { name: 'file', unit: 'file', default: null, help: '' },
        { name: 'key', unit: 'any key=value', default: null, help: '' },
      ],
    },
  ],
  presets: [],
};

describe('option texts', () => {
  test.each([
    ['rate', '10mbit', { model: 'fixed', params: { rate: '10mbit' } }],
    ['rate', 'fixed:rate=10mbit', { model: 'fixed', params: { rate: '10mbit' } }],
    ['rate', 'unlimited', { model: 'unlimited', params: {} }],
    ['delay', 'normal:20ms,2ms', { model: 'normal', params: { mean: '20ms', stddev: '2ms' } }],
    [
      'delay',
      'normal:stddev=1ms,5ms,25%',
      { model: 'normal', params: { mean: '5ms', stddev: '1ms', correlation: '25%' } },
    ],
    ['queue', '64kb', { model: 'tail-drop', params: { bytes: '64kb' } }],
    ['queue', '100p', { model: 'tail-drop', params: { packets: '100p' } }],
  ])('%s %s is read', (kind, text, result) =>
    expect(parseOption(registry, kind, text)).toEqual({ mode: 'model', ...result }),
  );

  test('an unknown form stays text', () => {
    expect(draftOf(registry, 'delay', 'normal:what,is,this,now')).toEqual({
      mode: 'text',
      text: 'normal:what,is,this,now',
    });
    expect(draftOf(registry, 'loss', ['1%', '2%'])).toEqual({ mode: 'text', text: '1%\n2%' });
  });

  test.each([
    ['rate', 'fixed', { rate: ' 5mbit ' }, '5mbit'],
    ['rate', 'unlimited', {}, 'unlimited'],
    ['delay', 'normal', { mean: '20ms', stddev: '' }, 'normal:mean=20ms'],
    ['queue', 'tail-drop', { bytes: '64kb' }, 'tail-drop:bytes=64kb'],
    ['rate', 'fixed', { rate: 'fast' }, 'fixed:rate=fast'],
    ['rate', 'plugin', { file: 'a.so', key: 'x=1,y=2' }, 'plugin:file=a.so,x=1,y=2'],
  ])('%s %s is written', (kind, model, params, text) =>
    expect(writeOption(registry, kind, { mode: 'model', model, params })).toBe(text),
  );

  test('each line is a value', () => {
    expect(writeOption(registry, 'loss', { mode: 'text', text: ' 1%\n\n2% ' })).toEqual([
      '1%',
      '2%',
    ]);
    expect(writeOption(registry, 'loss', { mode: 'text', text: '1%' })).toBe('1%');
    expect(writeOption(registry, 'loss', { mode: 'text', text: ' \n' })).toBeNull();
  });

  test('hints have unit, range and default', () => {
    expect(hintOf({ name: 'x', unit: 'probability', default: '1%', help: '', example: '5%' })).toBe(
      'probability, such as 5%; 0 % to 100 %; default 1%',
    );
    expect(hintOf({ name: 'x', unit: 'number', default: null, help: '', min: 1, max: 9 })).toBe(
      'number; 1 to 9',
    );
  });
});

function draft(...parts: Partial<ReturnType<typeof newPart>>[]): Draft {
  return {
    parts: parts.map((part, at) => ({ ...newPart(at + 1, 'a'), ...part })),
    when: { kind: 'now', text: '' },
  };
}

const rate = (value: string) =>
  ({ rate: { mode: 'model', model: 'fixed', params: { rate: value } } }) as const;

describe('conversion of a draft to a change', () => {
  test('all parts have the same time', () => {
    const whole = draft(
      { targets: 'a, b*', side: 'up', options: rate('5mbit') },
      { targets: 'c.down', side: 'both', options: rate('1mbit') },
      { targets: 'd', action: 'off' },
      { targets: 'e f', action: 'pause', side: 'down' },
    );
    expect(toChange(registry, { ...whole, when: { kind: 'in', text: ' 2s ' } })).toEqual({
      in: '2s',
      set: { 'a.up': { rate: '5mbit' }, 'b*.up': { rate: '5mbit' }, 'c.down': { rate: '1mbit' } },
      off: ['d'],
      pause: ['e.down', 'f.down'],
    });
  });

  test('merges parts for the same link', () => {
    const delay = { delay: { mode: 'text', text: '5ms' } } as const;
    expect(toChange(registry, draft({ options: rate('1mbit') }, { options: delay })).set).toEqual({
      a: { rate: '1mbit', delay: '5ms' },
    });
  });

  test('reports missing input', () => {
    expect(missing(draft({ targets: ' ', options: rate('1mbit') }))).toMatch(/link/);
    expect(missing(draft({}))).toMatch(/option/);
    expect(
      missing({ ...draft({ options: rate('1mbit') }), when: { kind: 'at', text: '' } }),
    ).toMatch(/when/);
    expect(missing(draft({ action: 'off' }))).toBeNull();
  });

  test('a preset yields a part per direction', () => {
    const preset = { name: 'p', summary: '', up: { rate: ['1mbit'] }, down: { rate: ['2mbit'] } };
    const parts = presetParts(registry, newPart(1, 'a'), preset, 2);
    expect(toChange(registry, { parts, when: { kind: 'now', text: '' } }).set).toEqual({
      'a.up': { rate: '1mbit' },
      'a.down': { rate: '2mbit' },
    });
    expect(
      presetParts(registry, newPart(1, 'a.down'), preset, 2).map(({ options }) => options),
    ).toEqual([rate('2mbit')]);
    expect(presetParts(registry, newPart(1, 'a'), { ...preset, down: preset.up }, 2).length).toBe(
      1,
    );
  });
});

describe('problems', () => {
  const whole = draft(
    {
      targets: 'a/b',
      options: { delay: { mode: 'model', model: 'normal', params: { mean: '1ms', stddev: 'x' } } },
    },
    { targets: 'c', options: rate('fast') },
    { targets: 'none', action: 'off' },
  );
  const problem = (pointer: string | undefined, field: string, reason = 'r') => ({
    ...(pointer === undefined ? {} : { pointer }),
    field,
    reason,
  });

  test('are assigned to their field', () => {
    const [placed] = place(whole, [
      problem('/set/a~1b/delay', 'set.a/b.delay', "normal: stddev: 'x' is not a number"),
    ]);
    expect(placed).toMatchObject({ part: 1, option: 'delay', param: 'stddev' });
    const [plain] = place(whole, [problem('/set/c/rate', 'set.c.rate', "'fast' is not a number")]);
    expect(plain).toMatchObject({ part: 2, option: 'rate', param: 'rate' });
  });

  test('of names belong to the links, of times to the time, and others to the form', () => {
    expect(place(whole, [problem('/off/0', 'off')])[0]).toMatchObject({ part: 3, option: null });
    expect(place(whole, [problem(undefined, 'set.c')])[0]).toMatchObject({ part: 2, option: null });
    expect(place(whole, [problem('/in', 'in')])[0]).toMatchObject({ part: null, when: true });
    expect(place(whole, [problem('/add', 'add')])[0]).toMatchObject({ part: null, when: false });
  });

  test('pointers are unescaped', () => {
    expect(pointerKeys('/set/a~1b~0c/delay')).toEqual(['set', 'a/b~c', 'delay']);
  });
});

function direction(options: Options, state: Direction['state'] = 'on'): Direction {
  return { options, state } as Direction;
}

const links: Link[] = [
  {
    name: 'a',
    shared: false,
    match: [],
    up: direction({ rate: '1mbit' }),
    down: direction({ rate: '9mbit', loss: ['1%', '2%'] }, 'paused'),
  },
  { name: 'b', shared: true, match: [], up: direction({}) },
];

describe('undo', () => {
  test('restores the previous options of every direction', () => {
    expect(undoOf({ set: { '*': { rate: '5mbit', loss: '3%' } } }, links)).toEqual({
      set: {
        'a.up': { rate: '1mbit', loss: null },
        'a.down': { rate: '9mbit', loss: ['1%', '2%'] },
        'b.up': { rate: null, loss: null },
      },
    });
  });

  test('restores only changed options', () => {
    expect(undoOf({ set: { 'a.up': { rate: '5mbit' } } }, links)).toEqual({
      set: { 'a.up': { rate: '1mbit' } },
    });
  });

  test('restores states', () => {
    expect(undoOf({ off: ['a'], on: 'b' }, links)).toEqual({
      on: ['a.up', 'b.up'],
      pause: ['a.down'],
    });
  });

  test('is unavailable for irreversible changes', () => {
    expect(undoOf({ remove: 'a' }, links)).toBeNull();
    expect(undoOf({ move: { a: 'b' } }, links)).toBeNull();
    expect(undoOf({ set: { none: { rate: '1mbit' } } }, links)).toBeNull();
  });

  test('keeps a bounded number of entries', () => {
    let entries: UndoEntry[] = [];
    for (let at = 0; at < 100; at += 1) entries = pushEntry(entries, { on: 'a' }, at, { off: 'a' });
    expect(entries.length).toBe(20);
    expect(entries[0]?.at_ns).toBe(99);
    const large = { set: { ['x'.repeat(150_000)]: { rate: '1mbit' } } };
    entries = pushEntry(pushEntry([], large, 1, large), large, 2, large);
    expect(entries.length).toBe(1);
  });
});

describe('recorder', () => {
  const done = (
    at_ns: number,
    change: ChangeDone['change'],
    more: Partial<ChangeDone> = {},
  ): ChangeDone => ({
    at_ns,
    by: 'control',
    change,
    links: 1,
    ...more,
  });

  test('times keep nanosecond precision', () => {
    expect(timeText(0)).toBe('0s');
    expect(timeText(3_142_547_166)).toBe('3.142547166s');
    expect(timeText(2_500_000_000)).toBe('2.5s');
    expect(timeText(86_400_000_000_001)).toBe('86400.000000001s');
  });

  test('records only manual changes, in order', () => {
    const changes = [
      done(5e9, { on: 'a' }),
      done(1e9, { on: 'b' }),
      done(2e9, { on: 'c' }, { by: 'scenario' }),
      done(3e9, { on: 'd' }, { error: 'no' }),
      done(4e9, { remove: 'e' }),
      done(9e9, { on: 'f' }),
    ];
    expect(recorded(changes, 0, 6e9).map(({ at_ns }) => at_ns)).toEqual([1e9, 5e9]);
  });

  test('writes a scenario', () => {
    const text = scenarioOf(
      [
        done(1_500_000_000, {
          in: '1s',
          set: { 'adsl*.up': { rate: '5mbit', loss: ['1%', '2%'] }, b: { delay: '5ms' } },
        }),
        done(1_700_000_000, { set: { a: { queue: null } } }),
        done(2e9, { off: 'a"b', move: { a: 'b' }, outage: '5ms' }),
      ],
      1e9,
      { queue: 'derived' },
    );
    expect(text.split('\n').slice(1)).toEqual([
      '',
      '[[at]]',
      'time = "0.5s"',
      'set = { "adsl*.up" = { rate = "5mbit", loss = ["1%", "2%"] }, b = { delay = "5ms" } }',
      '',
      '[[at]]',
      'time = "0.7s"',
      'set = { a = { queue = "derived" } }',
      '',
      '[[at]]',
      'time = "1s"',
      'off = "a\\"b"',
      'move = { a = "b" }',
      'outage = "5ms"',
      '',
    ]);
  });

  test('describes changes', () => {
    expect(changeText({ set: { a: { rate: '2mbit', loss: [] } }, off: ['b', 'c'] })).toBe(
      'a: rate=2mbit loss=none; off b, c',
    );
    expect(changeText({ ramp: { a: { option: 'loss', from: '0%', to: '1%', time: '10s' } } })).toBe(
      'a: loss from 0% to 1% in 10s',
    );
  });
});

describe('timeline', () => {
  test('merges past and upcoming events without duplicates', () => {
    const up = (at_ns: number) =>
      ({ at_ns, by: 'scenario', change: { on: 'a' }, links: 1 }) as const;
    const events = timelineOf(
      [up(2e9), up(1e9)],
      {
        elapsed_s: 1.5,
        skipped_s: 0,
        events: [
          { at_ns: 2e9, change: { on: 'a' } },
          { at_ns: 60e9, change: { on: 'a' } },
        ],
      },
      1.5,
    );
    expect(events.map(({ at_s, done: isDone }) => [at_s, isDone])).toEqual([
      [1, true],
      [2, false],
      [60, false],
    ]);
    expect(timelineEnd(events, 1.5)).toBeCloseTo(63);
    expect(timelineEnd([], 3)).toBe(10);
  });
});
