//! A scenario in a separate file: `[[at]]` tables and nothing else, about a
//! topology that has been read.

use super::builder::Builder;
use super::fields::{EVENT, Field, Kind, Section};
use super::problem::Complaints;
use super::timeline::Timeline;
use super::value::Table;
use super::{events, toml_table, tree};

/// All that such a file may say.
static SCENARIO: Section = Section {
    name: "scenario",
    help: "What changes while a topology runs",
    options: false,
    fields: &[Field {
        name: "at",
        kind: Kind::Tables(&EVENT),
        help: "what changes while it runs, in order of time",
    }],
};

/// A file that stands in for a topology's own scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioText<'a> {
    /// The file's name, for problems.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Whether a file says what such a file may say, and nothing else.
pub(super) fn is_one(file: &Table<'_>) -> bool {
    let named = |name: &str| SCENARIO.fields.iter().any(|field| field.name == name);
    !file.is_empty() && file.keys().all(named)
}

/// Reads a scenario. All links and paths must have been read. Problems are
/// reported with their places in the scenario's file.
pub(super) fn read<'a>(scenario: ScenarioText<'a>, builder: &mut Builder<'a>) -> Timeline {
    let complaints = Complaints::new(scenario.name, scenario.text);
    let of_topology = std::mem::replace(&mut builder.complaints, complaints);
    let mut timeline = Timeline::default();
    if let Some(file) = toml_table(scenario.text, &mut builder.complaints) {
        tree::check(&SCENARIO, &file, "", &mut builder.complaints);
        timeline = events::read(&file, builder);
    }
    let of_scenario = std::mem::replace(&mut builder.complaints, of_topology);
    builder.complaints.join(of_scenario);
    timeline
}
