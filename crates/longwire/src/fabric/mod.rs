//! A topology as a running fabric: its links and paths by number, its rules,
//! its scenario as orders, and what changes it while it runs.

mod controller;
mod giving;
mod known;
mod numbered;
mod report;
#[cfg(test)]
mod tests;
mod views;
mod words;
mod works;

pub use controller::{Changed, Controller};
pub use known::Done;
pub use numbered::{Numbered, NumberedLink};
pub use report::{LinkRow, NetworkReport, write_text};
pub use views::{LinkView, PathView, RuleView, WayView};
pub use words::options as options_in_json;
pub use works::Prepared;
