import { describe, expect, test } from 'vitest';
import type { Link, Path, Port, Rule } from '../../src/api/types';
import {
  boxHeight,
  boxWidth,
  columnsOf,
  curve,
  lanesOf,
  layout,
  sidesOf,
  type Topology,
} from '../../src/views/overview/layout';

function topology(
  links: string[],
  paths: Record<string, string[]>,
  ports: string[],
  rules: [string, string][] = [],
): Topology {
  return {
    links: links.map(
      (name) =>
        ({
          name,
          match: rules.filter(([, to]) => to.startsWith(`${name}.`)).map(([match]) => match),
        }) as Link,
    ),
    paths: Object.entries(paths).map(
      ([name, via]) => ({ name, via: via.map((link) => `${link}.up`) }) as Path,
    ),
    ports: ports.map((name) => ({ name }) as Port),
    rules: rules.map(([match, leads_to], rule) => ({ match, leads_to, rule }) as Rule),
  };
}

const parkingLot = topology(
  ['first', 'second', 'third'],
  { long: ['first', 'second', 'third'], short1: ['first'], short2: ['second'], short3: ['third'] },
  ['left', 'right'],
);

describe('topology diagram', () => {
  test('one link fits on a phone, and path names have enough space', () => {
    const one = topology(['link'], {}, ['near', 'far']);
    expect(layout(one, true).width).toBeLessThanOrEqual(344);
    expect(layout(parkingLot, true)).toEqual(layout(parkingLot));
  });

  test('one link between two ports', () => {
    const picture = layout(
      topology(
        ['link'],
        {},
        ['near', 'far'],
        [
          ['in-port=near', 'link.up'],
          ['in-port=far', 'link.down'],
        ],
      ),
    );
    expect(picture.links.length).toBe(1);
    expect(picture.ports.map(({ name, side }) => [name, side])).toEqual([
      ['near', 'left'],
      ['far', 'right'],
    ]);
    expect(picture.ways.length).toBe(1);
    expect(picture.portEdges.length).toBe(2);
  });

  test('links are in the order in which paths cross them', () => {
    const columns = columnsOf(lanesOf(parkingLot));
    expect([...columns.entries()]).toEqual([
      ['first', 0],
      ['second', 1],
      ['third', 2],
    ]);
  });

  test('a cycle of paths does not loop forever', () => {
    const columns = columnsOf([
      { name: 'x', isPath: true, links: ['a', 'b'] },
      { name: 'y', isPath: true, links: ['b', 'a'] },
    ]);
    expect([...columns.values()].every((column) => column >= 0 && column < 2)).toBe(true);
  });

  test.each([
    ['parking lot', parkingLot],
    [
      'twelve links',
      topology(
        Array.from({ length: 12 }, (_, at) => `l${at}`),
        {},
        ['a', 'b', 'c'],
      ),
    ],
    ['none', topology([], {}, [])],
  ])('%s: nothing overlaps or stands outside', (_, each) => {
    const picture = layout(each);
    expect(picture.links.length).toBe(each.links.length);
    for (const box of picture.links) {
      expect(box.x).toBeGreaterThan(picture.bars[0]);
      expect(box.x + boxWidth).toBeLessThan(picture.bars[1]);
      expect(box.y).toBeGreaterThanOrEqual(0);
      expect(box.y + boxHeight).toBeLessThanOrEqual(picture.height);
      for (const other of picture.links) {
        if (other === box || other.x !== box.x) continue;
        expect(Math.abs(other.y - box.y)).toBeGreaterThanOrEqual(boxHeight);
      }
    }
    for (const { d } of picture.ways) expect(d).not.toMatch(/NaN|undefined/);
  });

  test('ports are on the side at which their frames enter', () => {
    const sides = sidesOf(
      topology(
        ['a'],
        {},
        ['w', 'x', 'y', 'z'],
        [
          ['in-port=z,src=10.0.0.0/8', 'a.up'],
          ['in-port=w', 'a.down'],
        ],
      ),
    );
    expect(sides.left).toContain('z');
    expect(sides.right).toContain('w');
    expect(sides.left.length + sides.right.length).toBe(4);
  });

  test('routes are straight where possible', () => {
    expect(
      curve([
        [0, 5],
        [10, 5],
        [20, 9],
      ]),
    ).toBe('M0 5L10 5C15 5 15 9 20 9');
  });
});
