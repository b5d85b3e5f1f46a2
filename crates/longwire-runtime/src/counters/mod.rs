//! The single table of all link, port and run counters.
//!
//! [`table`] lists the counters and the artifact kinds. It generates:
//!
//! * the cells in which threads count ([`table::TrafficCells`], [`LinkCells`] …),
//! * the totals read from them ([`Traffic`], [`LinkTotals`] …),
//! * the fields of reports and of the control API, with their JSON schema,
//! * Prometheus metrics, `longwire ctl`, the text report, and the measures of `--require`.
//!
//! ```
//! use longwire_runtime::counters::Effects;
//!
//! let names: Vec<&str> = Effects::COUNTERS.iter().map(|counter| counter.name).collect();
//! assert!(names.contains(&"ecn_marked"));
//! let effects = Effects { corrupted: 3, ..Effects::default() };
//! assert!(effects.counted().any(|(counter, count)| counter.name == "corrupted" && count == 3));
//! ```
//!
//! To add a link counter, add a row to [`Effects`] in `table.rs` and the line that counts it to
//! `cells.rs`.

mod cells;
mod counter;
mod delays;
mod shared;
mod spread;
pub mod table;

pub(crate) use cells::{BurstCounts, StageCells, StageTotals};
pub use cells::{Drops, LinkCells, LinkTotals, NamedCounts};
pub use counter::{CountCell, Counter, Fold, MetricHelp, Scope, Unit};
pub use delays::{DelayCells, DelayCounts, DelayQuantiles};
pub(crate) use shared::LinkShared;
pub(crate) use spread::histogram;
pub use spread::{LATENESS, RECEIVED, Spread, Statistic, buckets};
pub use table::{
    Artifact, CoreCells, CoreCounts, Effects, Handovers, Memory, QueueLengths, Traffic,
};
