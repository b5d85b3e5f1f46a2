//! Longwire's configuration file: TOML with the names and syntax of the command line, parsed into a
//! plan of the run.
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
//! // All problems are reported, with file, line and column.
//! let problems = Topology::parse("house.toml", &text.replace("rate", "rat"), Path::new(""));
//! let problem = problems.expect_err("a misspelt option")[0].to_string();
//! assert!(problem.starts_with("house.toml:9:5: link.rat:"), "{problem}");
//! ```
//!
//! [`Topology::read`] reads a file, [`Topology::read_change`] a change to a running network, and
//! [`ns::import`] an ns-2 or Emulab script. [`fields`] is the table of all fields, from which the
//! parser and the JSON [`schema`] derive. [`summary`] counts a topology's links and describes its
//! timeline.

mod analysis;
mod attach;
mod builder;
mod change;
mod cluster;
mod events;
pub mod fields;
mod files;
mod hosts;
mod links;
mod matchers;
pub mod ns;
mod options;
mod pair;
mod paths;
mod plan;
mod problem;
mod ramp;
mod rows;
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

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use longwire_capture::open;
use longwire_packet::classify::Order;
use longwire_runtime::OnPortLoss;
use toml::de::DeTable;

pub use change::{Added, Change, ChangeTime};
pub use files::{Files, StartFiles};
pub use longwire_units::glob;
pub use options::duplex_of_json;
pub use pair::{PairOptions, PairPlan};
pub use plan::{
    AttachPlan, CarrierPlan, Class, Cluster, Direction, Hop, HostPlan, LinkPlan, PathPlan,
    PortPlan, RulePlan, Target, Topology, Unmatched,
};
pub use problem::Problem;
pub use ramp::Ramp;
pub use timeline::{Action, Command, Event, RampStep, State, Timeline};

use crate::steps::Steps;
use builder::Builder;
pub use builder::split_direction;
use options::OptionStore;
use problem::Diagnostics;
use tree::Placed;
use value::Table;

/// Maximum file size in bytes (1 GiB), several times that of a file with a million links.
const FILE_MAX: u64 = 1 << 30;

/// Prefix of a link name in `unmatched`.
const LINK_PREFIX: &str = "link:";

impl Topology {
    /// Reads a file. Paths of CSV files are relative to its folder; paths in models are relative to
    /// the working directory.
    ///
    /// # Errors
    /// All problems, sorted by position.
    pub fn read(path: &Path) -> Result<Topology, Vec<Problem>> {
        Topology::read_in_steps(path, None, &StartFiles::any(), Steps::ignored())
    }

    /// Reads a file with restricted file access and progress reports. The events of the file
    /// `scenario`, if given, replace those of `path`.
    ///
    /// # Errors
    /// The errors of [`Topology::read`], for both files.
    pub fn read_in_steps(
        path: &Path,
        scenario: Option<&Path>,
        files: &Arc<dyn Files>,
        steps: &Steps,
    ) -> Result<Topology, Vec<Problem>> {
        steps.begin("reading the file", None);
        let (name, text) = named_text(path)?;
        let other = scenario.map(named_text).transpose()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Topology::parse_in_steps((&name, &text), folder, other.as_ref(), files, steps)
    }

    /// Parses text as if it were a file with this name in this folder.
    ///
    /// # Errors
    /// The errors of [`Topology::read`].
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Topology, Vec<Problem>> {
        let (files, steps) = (StartFiles::any(), Steps::ignored());
        Topology::parse_in_steps((name, text), folder, None, &files, steps)
    }

    /// Parses text from an untrusted source, with restricted file access.
    ///
    /// # Errors
    /// The errors of [`Topology::read`].
    pub fn parse_naming(
        name: &str,
        text: &str,
        files: &Arc<dyn Files>,
    ) -> Result<Topology, Vec<Problem>> {
        Topology::parse_in_steps((name, text), Path::new(""), None, files, Steps::ignored())
    }

    fn parse_in_steps(
        (name, text): (&str, &str),
        folder: &Path,
        scenario: Option<&NamedText>,
        files: &Arc<dyn Files>,
        steps: &Steps,
    ) -> Result<Topology, Vec<Problem>> {
        let mut diagnostics = Diagnostics::new(name, text);
        diagnostics.may_quote_rows = files.may_quote();
        let Some(file) = toml_table(text, &mut diagnostics) else {
            return Err(diagnostics.finish().err().unwrap_or_default());
        };
        if scenario.is_none() && events::is_scenario(&file) {
            let remedy = format!(
                "pass it with its topology: `longwire check network.toml \
                 --scenario {name}`"
            );
            let reason = "the file has only [[at]] tables: it is a scenario, not a topology";
            diagnostics.refuse(0..0, "", reason, &remedy);
            return Err(diagnostics.finish().err().unwrap_or_default());
        }
        let file = &file;
        tree::check(&fields::FILE, file, "", &mut diagnostics);
        let mut builder = begin(file, (folder, files, steps), diagnostics);
        steps.begin("reading links", None);
        links::read_all(file, &mut builder);
        links::match_all(file, &mut builder);
        let used = scenario.map(|_| builder.used.clone());
        builder.topology.timeline = events::read(file, &mut builder);
        if let (Some(scenario), Some(used)) = (scenario, used) {
            // Forget the links that only the replaced scenario used.
            builder.used = used;
            builder.topology.replaced = builder.topology.timeline.events.len();
            builder.topology.timeline = events::read_scenario(scenario, &mut builder);
        }
        steps.begin("sorting rules", None);
        finish(file, builder)
    }
}

/// Parses TOML. On syntax errors, reports them and returns `None`: semantic errors would only be
/// their consequences.
fn toml_table<'t>(text: &'t str, diagnostics: &mut Diagnostics<'_>) -> Option<Table<'t>> {
    let (file, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().to_owned();
        diagnostics.refuse(span, "", message, "the file is not valid TOML (toml.io)");
    }
    errors.is_empty().then(|| file.into_inner().into())
}

/// A file's name (for messages) and its text.
type NamedText = (String, String);

fn named_text(path: &Path) -> Result<NamedText, Vec<Problem>> {
    let name = path.display().to_string();
    match read_file(path) {
        Ok(text) => Ok((name, text)),
        Err(reason) => Err(vec![Problem {
            file: name,
            reason,
            ..Problem::default()
        }]),
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let file = open::to_read(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    })?;
    if text.len() as u64 > FILE_MAX {
        Err("the file is larger than 1 GiB; use csv or count to define links".to_owned())
    } else {
        Ok(text)
    }
}

/// Reads the parts of a file on which links depend.
fn begin<'a>(
    file: &Table<'_>,
    (folder, files, steps): (&Path, &Arc<dyn Files>, &'a Steps),
    diagnostics: Diagnostics<'a>,
) -> Builder<'a> {
    let mut builder = Builder::new(diagnostics, OptionStore::with(Arc::clone(files)));
    builder.steps = steps;
    let Builder {
        topology,
        store,
        diagnostics,
        ..
    } = &mut builder;
    topology.folder = folder.to_owned();
    topology.ports = switching::ports(file, files.access(), diagnostics);
    topology.attached = attach::read(file, &topology.ports, diagnostics);
    topology.bridge = switching::bridge(file, &topology.ports, diagnostics);
    if let Some(table) = tree::table(file, "defaults") {
        topology.defaults = store.duplex(table, "defaults", diagnostics);
    }
    for (name, value) in tree::table(file, "templates").map_or(Vec::new(), tree::entries) {
        if let Some(table) = value.as_table() {
            let at = format!("templates.{}", name.value);
            let options = store.duplex(table, &at, diagnostics);
            topology.templates.insert(name.value.to_owned(), options);
        }
    }
    builder
}

/// Reads the parts of a file that depend on links, and returns the topology.
fn finish(file: &Table<'_>, mut builder: Builder) -> Result<Topology, Vec<Problem>> {
    builder.topology.unmatched = unmatched(file, &mut builder);
    builder.topology.cluster = cluster::read(file, &mut builder);
    builder.topology.carriers = attach::carriers(file, &mut builder);
    analysis::warn_of_unused(file, &mut builder);
    let topology = &mut builder.topology;
    topology.seed = tree::whole(file, "seed");
    topology.order = match tree::text(file, "classify").map(|word| word.value) {
        Some("specific") => Order::MostSpecific,
        _ => Order::First,
    };
    topology.on_port_loss = match tree::text(file, "on-port-loss").map(|word| word.value) {
        Some("continue") => OnPortLoss::Continue,
        _ => OnPortLoss::End,
    };
    builder.finish()
}

fn unmatched(file: &Table<'_>, builder: &mut Builder) -> Unmatched {
    let Some(Placed { value, span }) = tree::text(file, "unmatched") else {
        return Unmatched::Pass;
    };
    match (value, value.strip_prefix(LINK_PREFIX).map(split_direction)) {
        ("pass", _) => Unmatched::Pass,
        ("drop", _) => Unmatched::Drop,
        (_, Some((name, None))) => {
            if let Some(link) = builder.topology.link_named(name) {
                builder.used[link] = true;
                return Unmatched::Link(link as u32);
            }
            builder.no_link(name, span, "unmatched");
            Unmatched::Pass
        }
        _ => {
            let reason = format!("unknown value '{value}'");
            let remedy = "write pass, drop, or link:NAME";
            builder.refuse(span, "unmatched", reason, remedy);
            Unmatched::Pass
        }
    }
}
