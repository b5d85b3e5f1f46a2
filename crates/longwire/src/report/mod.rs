//! Reports of runs, as text and JSON.

pub mod artifacts;
mod changes;
mod columns;
mod ending;
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
pub use ending::{Ending, ReportStream};
pub use finish::{Document, check_file, finish, on_stuck_plugin, write_file};
pub use live::{Live, StatusLine};
pub use longwire_traffic::require::{self, Requirement, RunKind};
pub use longwire_units::words;
pub use output::{print_error, print_json, print_line, write_json};
pub use replay::ReplayLine;
pub use start::Announcement;
pub use verdict::Verdict;
