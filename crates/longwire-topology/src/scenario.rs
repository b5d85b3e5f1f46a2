//! Scenarios in a separate file: `[[at]]` tables only, for a topology that has been read.

use super::builder::Builder;
use super::fields::{EVENT, Field, Kind, Section};
use super::problem::Diagnostics;
use super::timeline::Timeline;
use super::value::Table;
use super::{NamedText, events, toml_table, tree};

/// The sections of a scenario file.
static SCENARIO: Section = Section {
    name: "scenario",
    help: "Changes of a topology during the run",
    options: false,
    fields: &[Field {
        name: "at",
        kind: Kind::Tables(&EVENT),
        help: "changes during the run, sorted by time",
    }],
};

/// Whether a file has the shape of a scenario.
pub(super) fn is_one(file: &Table<'_>) -> bool {
    let named = |name: &str| SCENARIO.fields.iter().any(|field| field.name == name);
    !file.is_empty() && file.keys().all(named)
}

/// Reads a scenario. All links and paths must have been read. Problems refer to the
/// scenario's file.
pub(super) fn read<'a>((name, text): &'a NamedText, builder: &mut Builder<'a>) -> Timeline {
    let diagnostics = Diagnostics::new(name, text);
    let of_topology = std::mem::replace(&mut builder.diagnostics, diagnostics);
    let mut timeline = Timeline::default();
    if let Some(file) = toml_table(text, &mut builder.diagnostics) {
        tree::check(&SCENARIO, &file, "", &mut builder.diagnostics);
        timeline = events::read(&file, builder);
    }
    let of_scenario = std::mem::replace(&mut builder.diagnostics, of_topology);
    builder.diagnostics.merge(of_scenario);
    timeline
}
