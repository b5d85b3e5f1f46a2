export type { components, paths } from "./api.js";
export * from "./errors.js";
export { Link, type LinkOptions, link, type Options } from "./link.js";
export { Network, type RunOptions } from "./network.js";
export { type DirectionReport, Report, type ReportData } from "./report.js";
