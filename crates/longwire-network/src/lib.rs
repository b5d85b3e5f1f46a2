//! Runs a topology: numbered links, scenario, changes, views and report.
//!
//! ```
//! use std::path::Path;
//!
//! use longwire_network::Numbered;
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
//! // Parts are started between open ports, live or in virtual time.
//! let parts = network.parts(&FileLoader::default())?;
//! assert_eq!(parts.links.len(), 2);
//! # Ok::<(), longwire_network::NetworkError>(())
//! ```
//!
//! `longwire_runtime::start` runs the parts of a [`Numbered`] topology (`NetworkPlan::changeable`).
//! A [`Controller`] changes the running network for its [`Scenario`] and for concurrent clients,
//! and provides [views](LinkView). [`NetworkReport`] contains the counters of links and ports.

mod apply;
mod by_class;
mod change_files;
mod changes;
mod controller;
mod json;
mod numbered;
mod plan;
mod report;
mod scenario;
pub mod shard_plan;
mod shards;
mod state;
#[cfg(test)]
mod tests;
mod views;

pub use changes::{ChangeRecord, Changes, Origin, SentChange};
pub use controller::{ChangeResult, Controller};
pub use json::{change_in_words, options as options_in_json, options_in_words};
pub use longwire_hosts::{HostsReport, PeerReport};
pub use longwire_runtime::deciding::FlowCount;
pub use numbered::{NetworkError, Numbered, NumberedLink};
pub use plan::PreparedCommand;
pub use report::NetworkReport;
pub use scenario::{Scenario, UpcomingEvent};
pub use views::{DirectionView, LinkView, PathView, RuleView, Totals};
