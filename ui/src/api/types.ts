// Types of the control API fields that the page reads.

export interface Problem {
  pointer?: string;
  field: string;
  reason: string;
  remedy?: string;
}

export interface Run {
  program: string;
  version: string;
  elapsed_s: number;
  seed: number;
  links: number;
  paths: number;
  /** Whether the token may change the network. */
  may_change: boolean;
  /** Whether the run keeps histories, that is, was started with `--view`. */
  view: boolean;
  /** The replay, if the run is one; a replay cannot be changed. */
  replay?: ReplayProgress;
}

export interface ReplayProgress {
  /** Share sent so far; null if the length is unknown. */
  sent: number | null;
  inputs: { name: string; read: number | null; behind_max_us: number }[];
}

export interface Totals {
  packets_in: number;
  bytes_in: number;
  packets_out: number;
  bytes_out: number;
  drops: Record<string, number>;
  ecn_marked: number;
  late: number;
  overload: number;
  queued: number;
}

export interface Rates {
  packets_in_per_s: number;
  bits_in_per_s: number;
  packets_out_per_s: number;
  bits_out_per_s: number;
  drops_per_s: number;
}

export interface StatsEvent {
  elapsed_s: number;
  interval_s: number;
  links: number;
  totals: Totals;
  rates: Rates | null;
}

export type LinkState = 'on' | 'off' | 'paused';
export type OptionValue = string | number | (string | number)[];
export type Options = Record<string, OptionValue>;

export interface Direction extends Totals {
  state: LinkState;
  options: Options;
  queue?: {
    packets: number;
    bytes: number;
    packets_limit?: number | null;
    bytes_limit?: number | null;
  };
}

export interface Link {
  name: string;
  shared: boolean;
  match: string[];
  up: Direction;
  down?: Direction;
}

export interface Links {
  links: Link[];
  next: string | null;
}

export interface Path {
  name: string;
  via: string[];
  match: string[];
  moved_to?: string;
}

export interface Port {
  name: string;
  packets_in: number;
  packets_out: number;
  lost?: unknown;
}

export interface Rule {
  rule: number;
  match: string;
  leads_to: string;
}

export interface TableRow {
  name: string;
  state: LinkState;
  bits_in_per_s: number;
  bits_out_per_s: number;
  packets_in_per_s: number;
  packets_out_per_s: number;
  drops_per_s: number;
  queued: number;
  late: number;
  overload: number;
  recent: (number | null)[];
}

export interface TablePage {
  elapsed_s: number;
  directions: number;
  fitting: number;
  rows: TableRow[];
}

export type Column = (number | null)[];

/** Samples of one direction: columns of equal length. */
export interface HistoryColumns {
  period_s?: number;
  elapsed_s: number[];
  bits_in_per_s: Column;
  bits_out_per_s: Column;
  rate_bits_per_s: Column;
  queued_frames: Column;
  delay_p50_us: Column;
  delay_p99_us: Column;
  queueing_p50_us: Column;
  queueing_p99_us: Column;
  marks_per_s: Column;
  late: Column;
  drops_per_s: Record<string, Column>;
}

export type Grade = 'faithful' | 'nearly-faithful' | 'no-frames' | 'not-faithful';

export interface Fidelity {
  elapsed_s: number;
  verdict: string;
  grade: Grade;
  lateness_us: { p50: number; p99: number; p999: number; max: number };
  histogram: { from_us: number; to_us: number | null; count: number }[];
  artifacts: Record<string, number>;
  pauses: { count: number; max_us: number; total_us: number };
  first: { at_s: number; text: string } | null;
}

export interface Flow {
  flow: string;
  packets: number;
  bytes: number;
  bits_per_s: number;
  share: number;
  error_packets: number;
}

export interface Flows {
  /** Run times at which flow counting began and this response was created. */
  since_s: number;
  elapsed_s: number;
  packets: number;
  flows: Flow[];
}

/** An upcoming event. Events of the next seconds are already in the list of changes. */
export interface ScenarioEvent {
  at_ns: number;
  change: Change;
}

export interface Scenario {
  events: ScenarioEvent[];
  elapsed_s: number;
  /** Time by which skips have advanced the events. */
  skipped_s: number;
}

export interface Param {
  name: string;
  unit: string;
  default: string | null;
  example?: string;
  help: string;
  choices?: string[];
  min?: string | number | null;
  max?: string | number | null;
}

export interface Model {
  kind: string;
  name: string;
  summary: string;
  params: Param[];
}

export interface Preset {
  name: string;
  summary: string;
  up: Record<string, string[]>;
  down: Record<string, string[]>;
}

export interface Registry {
  options: { name: string; default: string }[];
  models: Model[];
  presets: Preset[];
}

export type Names = string | string[];

/** The body of `POST /v1/changes`. */
export interface Change {
  at?: string;
  in?: string;
  set?: Record<string, Record<string, OptionValue | null>>;
  on?: Names;
  off?: Names;
  pause?: Names;
  move?: Record<string, string>;
  outage?: string;
  add?: unknown;
  remove?: Names;
  ramp?: Record<string, Record<string, unknown>>;
}

export interface ChangeDone {
  at_ns: number;
  by: 'scenario' | 'control';
  change: Change;
  links: number;
  until_ns?: number;
  error?: string;
}

export interface Changes {
  changes: ChangeDone[];
  forgotten: number;
}

export interface Changed {
  at_ns: number;
  links: number;
  warnings: Problem[];
}
