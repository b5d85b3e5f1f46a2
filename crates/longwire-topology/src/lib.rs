//! The configuration file of Longwire: TOML with the names and the grammar of the
//! command line, read into the plan of a run.
//!
//! ```
//! use std::path::Path;
//!
//! use longwire_topology::Topology;
//!
//! let text = r#"
//!     [ports]
//!     lan = "packet:eth1"
//!     wan = "packet:eth2"
//!
//!     [[link]]
//!     name = "adsl{n}"
//!     between = ["10.1.0.0/28", "10.2.0.0/28"]
//!     rate = "16mbit"
//!     delay = "20ms"
//! "#;
//! let topology = Topology::parse("house.toml", text, Path::new("")).expect("a valid file");
//! assert_eq!(topology.links.len(), 14);
//! assert_eq!(topology.rules[0].matcher.to_string(), "src=10.1.0.1,dst=10.2.0.1");
//!
//! // Problems are reported all at once, with file, line and column.
//! let problems = Topology::parse("house.toml", &text.replace("rate", "rat"), Path::new(""));
//! let problem = problems.expect_err("a misspelt option")[0].to_string();
//! assert!(problem.starts_with("house.toml:9:5: link.rat:"), "{problem}");
//! ```
//!
//! [`Topology::read`] reads a file, [`Topology::read_change`] a change of a running
//! network, [`ns::import`] a script of ns-2 or Emulab. [`fields`] is the table of all
//! fields, from which the reader and the JSON [`schema`] follow. [`summary`] counts the
//! links of a topology and describes its timeline.

mod analysis;
mod attach;
mod builder;
mod carrier;
mod change;
mod cluster;
mod draft;
mod duplex;
mod events;
pub mod fields;
mod files;
pub mod glob;
mod hosts;
mod links;
mod matchers;
pub mod ns;
mod options;
mod outputs;
mod pair;
mod paths;
mod plan;
mod problem;
mod ramp;
mod rows;
mod scenario;
pub mod schema;
pub mod steps;
pub mod summary;
mod switching;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
mod value;
mod workload;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use longwire_capture::open;
use longwire_engine::presets::Duplex;
use longwire_packet::bridge::Switching;
use longwire_packet::classify::Order;
use longwire_runtime::OnPortLoss;
use toml::de::DeTable;

pub use change::{Added, Change, Moment};
pub use duplex::duplex_of_json;
pub use files::{Files, StartFiles};
pub use pair::PairPlan;
pub use plan::{
    AttachPlan, CarrierPlan, Class, Cluster, Hop, HostPlan, LinkPlan, PathPlan, PortPlan, RulePlan,
    Target, Topology, Unmatched, Way,
};
pub use problem::Problem;
pub use ramp::Ramp;
pub use scenario::ScenarioText;
pub use timeline::{Action, Command, Event, RampStep, State, Timeline};

use crate::steps::Steps;
use builder::Builder;
pub use builder::direction;
use options::OptionStore;
use problem::Complaints;
use tree::Placed;
use value::Table;

/// The largest file: what a million links take, several times over. A larger
/// one is refused before it fills memory.
const FILE_MAX: u64 = 1 << 30;

/// The prefix of `unmatched` before the name of a link.
const LINK_PREFIX: &str = "link:";

impl Topology {
    /// Reads a file. CSV files that it names are searched next to it, files
    /// that models name where the command line would look for them.
    ///
    /// # Errors
    /// All that is wrong, by place; then nothing of the file may be used.
    pub fn read(path: &Path) -> Result<Topology, Vec<Problem>> {
        Topology::read_with(path, None)
    }

    /// Reads a file, and another with the scenario that replaces that of the first.
    ///
    /// # Errors
    /// As [`Topology::read`], of both files.
    pub fn read_with(path: &Path, scenario: Option<&Path>) -> Result<Topology, Vec<Problem>> {
        Topology::read_in_steps(path, scenario, &StartFiles::any(), Steps::ignored())
    }

    /// The same, with the files that both may name; says how far it is.
    ///
    /// # Errors
    /// As [`Topology::read_with`].
    pub fn read_in_steps(
        path: &Path,
        scenario: Option<&Path>,
        files: &Arc<dyn Files>,
        steps: &Steps,
    ) -> Result<Topology, Vec<Problem>> {
        steps.begin("reading the file", None);
        let (name, text) = named_text(path)?;
        let other = scenario.map(named_text).transpose()?;
        let scenario = other
            .as_ref()
            .map(|(name, text)| ScenarioText { name, text });
        let folder = path.parent().unwrap_or(Path::new(""));
        Topology::parse_in_steps((&name, &text), folder, scenario, files, steps)
    }

    /// Reads a text, and a file with the scenario that happens in place of the
    /// text's own. `name` stands for the text in messages.
    ///
    /// # Errors
    /// As [`Topology::read`], of both.
    pub fn parse_with_file(
        name: &str,
        text: &str,
        scenario: Option<&Path>,
    ) -> Result<Topology, Vec<Problem>> {
        let other = scenario.map(named_text).transpose()?;
        let scenario = other
            .as_ref()
            .map(|(name, text)| ScenarioText { name, text });
        Topology::parse_with(name, text, Path::new(""), scenario)
    }

    /// Reads a text as if it were in a file of this name in this folder.
    ///
    /// # Errors
    /// As [`Topology::read`].
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Topology, Vec<Problem>> {
        Topology::parse_with(name, text, folder, None)
    }

    /// Reads a text that is in no file of this machine, with the files that it may name.
    ///
    /// # Errors
    /// As [`Topology::read`].
    pub fn parse_naming(
        name: &str,
        text: &str,
        files: &Arc<dyn Files>,
    ) -> Result<Topology, Vec<Problem>> {
        let folder = Path::new("");
        Topology::parse_in_steps((name, text), folder, None, files, Steps::ignored())
    }

    /// The same with a scenario in a separate text.
    ///
    /// # Errors
    /// As [`Topology::read`], of both texts.
    pub fn parse_with(
        name: &str,
        text: &str,
        folder: &Path,
        scenario: Option<ScenarioText<'_>>,
    ) -> Result<Topology, Vec<Problem>> {
        let (files, steps) = (StartFiles::any(), Steps::ignored());
        Topology::parse_in_steps((name, text), folder, scenario, &files, steps)
    }

    fn parse_in_steps(
        (name, text): (&str, &str),
        folder: &Path,
        scenario: Option<ScenarioText<'_>>,
        files: &Arc<dyn Files>,
        steps: &Steps,
    ) -> Result<Topology, Vec<Problem>> {
        let mut complaints = Complaints::new(name, text);
        if !files.may_quote() {
            complaints.quote_no_rows();
        }
        let Some(file) = toml_table(text, &mut complaints) else {
            return Err(complaints.finish().err().unwrap_or_default());
        };
        if scenario.is_none() && scenario::is_one(&file) {
            let remedy = format!(
                "give it with its topology: `longwire check network.toml \
                 --scenario {name}`"
            );
            let reason = "the file has only [[at]]: it is a scenario, and no topology";
            complaints.refuse(0..0, "", reason, &remedy);
            return Err(complaints.finish().err().unwrap_or_default());
        }
        let file = &file;
        tree::check(&fields::FILE, file, "", &mut complaints);
        let mut builder = begin(file, (folder, files, steps), complaints);
        steps.begin("reading links", None);
        for item in tree::tables(file, "link") {
            links::read(&item, &mut builder);
        }
        for item in tree::tables(file, "path") {
            paths::read(&item, &mut builder);
        }
        links::match_all(file, &mut builder);
        let used = scenario.map(|_| builder.used.clone());
        let mut timeline = events::read(file, &mut builder);
        let mut replaced = 0;
        if let (Some(scenario), Some(used)) = (scenario, used) {
            // What only the other one leads to is not used.
            builder.used = used;
            replaced = timeline.events.len();
            timeline = scenario::read(scenario, &mut builder);
        }
        steps.begin("sorting rules", None);
        let topology = finish(file, builder, timeline)?;
        Ok(Topology {
            replaced,
            ..topology
        })
    }
}

/// A file's table; `None` if it is not TOML, which has been complained of:
/// what follows from a line that could not be read is no help.
fn toml_table<'t>(text: &'t str, complaints: &mut Complaints<'_>) -> Option<Table<'t>> {
    let (file, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().to_owned();
        complaints.refuse(span, "", message, "this is not TOML (toml.io)");
    }
    errors.is_empty().then(|| file.into_inner().into())
}

/// Returns the name of a file and its text.
fn named_text(path: &Path) -> Result<(String, String), Vec<Problem>> {
    let name = path.display().to_string();
    match read_file(path) {
        Ok(text) => Ok((name, text)),
        Err(reason) => {
            let mut complaints = Complaints::new(&name, "");
            let place = problem::Place::Row {
                file: name.clone(),
                line: 0,
            };
            complaints.refuse(place, "", reason, "");
            Err(complaints.finish().err().unwrap_or_default())
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let file = open::to_read(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_MAX {
        Err("the file is larger than 1 GiB; let a CSV file or count make the links".to_owned())
    } else {
        Ok(text)
    }
}

/// Everything that links need to know.
fn begin<'a>(
    file: &Table<'_>,
    (folder, files, steps): (&'a Path, &Arc<dyn Files>, &'a Steps),
    mut complaints: Complaints<'a>,
) -> Builder<'a> {
    let mut store = OptionStore::with(Arc::clone(files));
    let ports = switching::ports(file, files.access(), &mut complaints);
    let attached = attach::read(file, &ports, &mut complaints);
    let bridge = switching::bridge(file, &ports, &mut complaints);
    let pairs = match bridge.switching {
        Switching::Pairs(pairs) => Some(pairs),
        _ => None,
    };
    let defaults = tree::table(file, "defaults");
    let defaults = defaults.map(|table| store.duplex(table, "defaults", &mut complaints));
    let mut templates: HashMap<String, Duplex> = HashMap::new();
    for (name, value) in tree::table(file, "templates").map_or(Vec::new(), tree::entries) {
        if let Some(table) = value.as_table() {
            let at = format!("templates.{}", name.value);
            let options = store.duplex(table, &at, &mut complaints);
            templates.insert(name.value.to_owned(), options);
        }
    }
    Builder {
        steps,
        folder,
        ports,
        attached,
        pairs,
        defaults: defaults.unwrap_or_default(),
        templates,
        ..Builder::new(complaints, store)
    }
}

/// Reads the fields about all links, and returns the plan.
fn finish(
    file: &Table<'_>,
    mut builder: Builder,
    timeline: Timeline,
) -> Result<Topology, Vec<Problem>> {
    let unmatched = unmatched(file, &mut builder);
    let bridge = switching::bridge(file, &builder.ports, &mut Complaints::new("", ""));
    let cluster = cluster::read(file, &bridge, unmatched, &timeline, &mut builder);
    let carriers = carrier::read(file, &mut builder);
    analysis::warn_of_unused(file, &mut builder, &timeline);
    let order = match tree::text(file, "classify").map(|word| word.value) {
        Some("specific") => Order::MostSpecific,
        _ => Order::First,
    };
    Ok(Topology {
        seed: tree::whole(file, "seed"),
        order,
        unmatched,
        carriers,
        cluster,
        on_port_loss: match tree::text(file, "on-port-loss").map(|word| word.value) {
            Some("continue") => OnPortLoss::Continue,
            _ => OnPortLoss::End,
        },
        ..builder.finish(bridge, timeline)?
    })
}

fn unmatched(file: &Table<'_>, builder: &mut Builder) -> Unmatched {
    let Some(Placed { value, span }) = tree::text(file, "unmatched") else {
        return Unmatched::Pass;
    };
    match (value, value.strip_prefix(LINK_PREFIX).map(direction)) {
        ("pass", _) => Unmatched::Pass,
        ("drop", _) => Unmatched::Drop,
        (_, Some((name, None))) => match builder.names.get(name) {
            Some(Class::Link(link)) => {
                let link = *link;
                builder.used[link as usize] = true;
                Unmatched::Link(link)
            }
            _ => {
                builder.no_link(name, span, "unmatched");
                Unmatched::Pass
            }
        },
        _ => {
            let reason = format!("'{value}' is nothing that can become of a frame");
            let remedy = "write pass, drop, or link:NAME";
            builder.complaints.refuse(span, "unmatched", reason, remedy);
            Unmatched::Pass
        }
    }
}
