//! A topology as a running network: numbered links, scenario, changes, views and
//! report.
//!
//! ```
//! use std::path::Path;
//!
//! use longwire_fabric::Numbered;
//! use longwire_runtime::FileLoader;
//! use longwire_topology::Topology;
//!
//! let text = r#"
//!     ports = { lan = "packet:eth1", wan = "packet:eth2" }
//!     link = [{ name = "adsl", rate = "16mbit", down = { delay = "20ms" } }]
//! "#;
//! let topology = Topology::parse("house.toml", text, Path::new("")).expect("a valid file");
//! let network = Numbered::new(topology);
//! let names: Vec<&str> = network.links().iter().map(|link| link.name.as_str()).collect();
//! assert_eq!(names, ["adsl.up", "adsl.down"]);
//!
//! // The parts are started between open ports, live or in virtual time.
//! let parts = network.parts(&FileLoader::default())?;
//! assert_eq!(parts.links.len(), 2);
//! # Ok::<(), longwire_fabric::NetworkError>(())
//! ```
//!
//! `longwire_runtime::start` runs the parts of a [`Numbered`] topology, by
//! `NetworkPlan::changeable`. A
//! [`Controller`] changes the running network, for its [`Scenario`] and for clients at
//! once, and has [views](LinkView) of its links. [`NetworkReport`] counts what the
//! links and ports did.

mod apply;
mod change_files;
mod changes;
mod controller;
mod directions;
mod error;
mod json;
mod numbered;
mod plan;
mod report;
mod scenario;
mod scenario_clock;
mod shards;
mod state;
#[cfg(test)]
mod tests;
mod views;
mod words;

pub use changes::{Changes, Done, Origin, SentChange};
pub use controller::{Changed, Controller};
pub use directions::Direction;
pub use error::NetworkError;
pub use json::options as options_in_json;
pub use longwire_hosts::{HostsReport, PeerReport};
pub use longwire_runtime::fabric::FlowCount;
pub use numbered::{Numbered, NumberedLink};
pub use plan::Prepared;
pub use report::NetworkReport;
pub use scenario::Scenario;
pub use scenario_clock::UpcomingEvent;
pub use views::{LinkView, PathView, RuleView, Totals, WayView};
pub use words::{change_in_words, options_in_words};
