//! A topology as a running fabric: its links and paths by number, its rules,
//! its scenario as orders, and what changes it while it runs.

mod change_files;
mod changes;
mod controller;
mod giving;
mod known;
mod numbered;
mod recorder;
mod report;
mod scenario;
#[cfg(test)]
mod tests;
mod verdict;
mod views;
mod words;
mod works;

pub use changes::{Changes, Done};
pub use controller::{Changed, Controller};
pub use numbered::{Numbered, NumberedLink};
pub use recorder::NetworkRecorder;
pub use report::{LinkRow, NetworkReport, write_text};
pub use scenario::Scenario;
pub use views::{LinkView, PathView, RuleView, WayView};
pub use words::options as options_in_json;
pub use works::Prepared;
