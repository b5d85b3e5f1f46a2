import type { components } from "./api.js";

/** Base of all errors of this package. */
export class LongwireError extends Error {
  override readonly name: string = this.constructor.name;
}

/** The link did not start: an option is invalid, or the system forbids user namespaces. */
export class StartError extends LongwireError {}

/** The link has ended, or ended with an error. */
export class EndedError extends LongwireError {}

/** A change was refused, and nothing was changed. */
export class RefusedError extends LongwireError {
  /** All problems, with remedies if known. */
  readonly problems: components["schemas"]["Error"]["problems"];

  constructor(answer: components["schemas"]["Error"]) {
    const remedies = answer.problems.filter((problem) => problem.remedy);
    const lines = remedies.map((problem) => `${problem.field}: ${problem.remedy}`);
    super([answer.error, ...lines].join("\n"));
    this.problems = answer.problems;
  }
}

/** The run did not meet a fidelity requirement. */
export class FidelityError extends LongwireError {}
