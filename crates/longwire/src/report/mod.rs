//! Reports of runs, as text and JSON.

pub mod artifacts;
mod changes;
mod columns;
pub mod finish;
pub mod live;
pub mod output;
mod overload;
mod received;
mod replay;
pub mod start;
pub mod summary;
pub mod text;
mod undelivered;
pub mod verdict;

pub use changes::change_line;
pub use live::Live;
pub use longwire_traffic::require::{self, Requirement, RunKind};
pub use longwire_units::words;
pub use replay::ReplayLine;
pub use verdict::Verdict;
