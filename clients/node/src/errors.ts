import type { components } from "./api.js";

/** Base of all errors of this package. */
export class LongwireError extends Error {
  override readonly name: string = this.constructor.name;
}

/** The link did not start: an option is wrong, or the system forbids user namespaces. */
export class StartError extends LongwireError {}

/** The link has ended, or did not end well. */
export class EndedError extends LongwireError {}

/** A change was refused, and nothing was changed. */
export class RefusedError extends LongwireError {
  /** Everything that is wrong, with a remedy where the program knows one. */
  readonly problems: components["schemas"]["Error"]["problems"];

  constructor(answer: components["schemas"]["Error"]) {
    const remedies = answer.problems.filter((problem) => problem.remedy);
    const lines = remedies.map((problem) => `${problem.field}: ${problem.remedy}`);
    super([answer.error, ...lines].join("\n"));
    this.problems = answer.problems;
  }
}

/** The run did not meet a requirement: the emulator was not as exact as demanded. */
export class FidelityError extends LongwireError {}
