import type { components } from "./api.js";
import { FidelityError } from "./errors.js";

type Schemas = components["schemas"];

/** Counters of a direction, `link.up` or `link.down`. */
export type DirectionReport = { name: string } & Schemas["Totals"];

/** The report of a run as JSON: ports, links, pauses of the machine. */
export type ReportData = Schemas["Report"] & { links: DirectionReport[] };

/** Measures of a port, a direction, or the run. */
type Row = Partial<Schemas["Port"] & Schemas["Totals"] & Pick<ReportData, "pauses" | "stops">> & {
  name: string;
};

/** Artifacts caused by machine pauses and by the start, not by the emulator itself. */
const EXCUSED = ["late_paused", "late_start"];

/** Artifacts that count frames lost by the emulator. */
const LOST = "memory refused ring_full too_long no_carrier send_failed unusable".split(" ");

const UNITS_NS: Record<string, number> = {
  ns: 1,
  us: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
};

const COMPARISONS: Record<string, (found: number, wanted: number) => boolean> = {
  "<": (found, wanted) => found < wanted,
  "<=": (found, wanted) => found <= wanted,
  "=": (found, wanted) => found === wanted,
  ">=": (found, wanted) => found >= wanted,
  ">": (found, wanted) => found > wanted,
};

/** The report of a run so far; complete once the link has ended. */
export class Report {
  constructor(readonly data: ReportData) {}

  /**
   * Returns a message for each condition that does not hold.
   *
   * @param expression as for `--require`: `"artifacts-lost=0,lateness.p99<1ms,up.drops<1%"`
   * @throws RangeError if the expression is invalid
   */
  unmet(expression: string): string[] {
    return expression.split(",").flatMap((clause) => this.#unmet(clause.trim()));
  }

  /** Throws {@link FidelityError} unless all conditions hold; see {@link unmet}. */
  require(expression: string): void {
    const unmet = this.unmet(expression);
    if (unmet.length > 0) {
      throw new FidelityError(unmet.join("; "));
    }
  }

  #unmet(clause: string): string[] {
    const match = /^([^<>=\s]+)\s*(<=|>=|<|>|=)\s*(\d+(?:\.\d+)?)\s*([a-z]*|%)$/.exec(clause);
    if (match === null) {
      throw new RangeError(`'${clause}': write a name, a comparison (< <= = >= >) and a value`);
    }
    const [, name = "", comparison = "", digits = "", unit = ""] = match;
    const isTime = /(^|\.)(lateness(-own)?|(pauses|stops)(?!\.count))\./.test(name);
    const factor = isTime ? UNITS_NS[unit] : { "": 1, "%": 0.01 }[unit];
    if (factor === undefined) {
      throw new RangeError(
        `'${clause}': write a ${isTime ? "time such as 50us" : "count, or a share such as 1%"}`,
      );
    }
    const found = this.#measures(name);
    if (found.length === 0) {
      throw new RangeError(`'${clause}': '${name}' is not in this report`);
    }
    const holds = ({ row, value }: { row: Row; value: number }) =>
      COMPARISONS[comparison]?.(
        unit === "%" ? value / frames(row) : value,
        Number(digits) * factor,
      );
    const unmet = found.filter((one) => !holds(one));
    return unmet.map(
      ({ row, value }) => `${clause}: ${row.name} had ${value}${isTime ? " ns" : ""}`,
    );
  }

  /** Returns a measure of all rows that have it, or of the row whose name is its prefix. */
  #measures(name: string): { row: Row; value: number }[] {
    const { pauses, stops, ports, links } = this.data;
    const rows: Row[] = [{ name: "the run", pauses, stops }, ...ports, ...links];
    const found = (row: Row, measured: string) => {
      const value = measure(row, measured);
      return value === undefined ? [] : [{ row, value }];
    };
    const all = rows.flatMap((row) => found(row, name));
    const named = (row: Row) => [row.name, row.name.replace(/^link\./, "")];
    const prefix = (row: Row) => named(row).find((one) => name.startsWith(`${one}.`));
    const one = rows.find(prefix);
    return all.length > 0 || one === undefined
      ? all
      : found(one, name.slice((prefix(one)?.length ?? 0) + 1));
  }
}

/** Returns a measure of a port, a direction or the run, in nanoseconds or as a count. */
function measure(row: Row, name: string): number | undefined {
  const [family = "", part = ""] = name.split(".", 2);
  const times = (found: Record<string, number> | undefined, field: string) => {
    const value = found?.[field];
    return value === undefined ? undefined : value * 1e3;
  };
  switch (family) {
    case "lateness":
      return times(row.lateness_us, part);
    case "lateness-own":
      return times(row.lateness_own_us, part);
    case "pauses":
    case "stops":
      return part === "count" ? row[family]?.count : times(row[family], `${part}_us`);
    case "drops":
    case "artifacts":
      return part === "" ? sum(row[family], () => true) : row[family]?.[part];
    case "artifacts-own":
      return sum(row.artifacts, (kind) => !EXCUSED.includes(kind));
    case "artifacts-lost":
      return sum(row.artifacts, (kind) => LOST.includes(kind));
  }
  const found: unknown = row[name as keyof Row];
  return typeof found === "number" ? found : undefined;
}

function sum(
  counts: Record<string, number> | undefined,
  includes: (kind: string) => boolean,
): number | undefined {
  const chosen = Object.entries(counts ?? {}).filter(([kind]) => includes(kind));
  return counts && chosen.reduce((total, [, value]) => total + value, 0);
}

/** Returns the base of shares in frames; 1 if there are none. */
function frames({ packets_in = 0, packets_out = 0, artifacts = {} }: Row): number {
  const lost = (artifacts.ring_full ?? 0) + (artifacts.too_long ?? 0);
  return Math.max(Math.max(packets_in, packets_out) + lost, 1);
}
