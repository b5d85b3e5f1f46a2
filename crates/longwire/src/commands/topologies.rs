//! Reads the topology of a run from a file, or builds it from link options.

use std::path::Path;

use longwire_node::process;
use longwire_runtime::FileLoader;
use longwire_topology::{PairOptions, PortPlan, Problem, StartFiles, Topology};
use longwire_units::count_of;

use crate::cli::{DuplexArgs, SEED_DEFAULT};
use crate::progress::StepsOnStderr;
use crate::report::start::{self, Announcement};
use crate::{Error, Globals};

/// A topology and its announcement. A single link is missing from the announcement, because it can
/// be described only once it is built.
pub(super) type ReadTopology = (Topology, Announcement);

/// Returns a topology with one link between two ports, given as name and specification; up is from
/// the first to the second. `scenario` is a file of timed changes.
///
/// # Errors
/// If options conflict, or the scenario is invalid.
pub(super) fn pair(
    ports: [(&str, &str); 2],
    link: &DuplexArgs,
    options: PairOptions,
    scenario: Option<&Path>,
    globals: &Globals,
) -> Result<ReadTopology, Error> {
    let ports = ports.map(|(name, opens)| PortPlan {
        name: name.to_owned(),
        opens: opens.to_owned(),
    });
    let topology = Topology::pair(ports, link.specs()?, options, scenario).map_err(|problems| {
        let problems = problems.iter();
        let problems = problems.map(|problem| match problem.remedy.as_str() {
            _ if scenario.is_some() => problem.to_string(),
            "" => problem.reason.clone(),
            remedy => format!("{}; {remedy}", problem.reason),
        });
        Error::usage(problems.collect::<Vec<_>>().join("\n"))
    })?;
    let mut announcement = Announcement::default();
    announcement.warnings = warn(&topology, globals);
    Ok((topology, announcement))
}

/// Reads a topology; a given `scenario` replaces the one in the file. Prints warnings, and returns
/// them for the report.
///
/// # Errors
/// If a file is invalid.
pub(super) fn read(
    file: &Path,
    scenario: Option<&Path>,
    globals: &Globals,
) -> Result<ReadTopology, Error> {
    let watch = StepsOnStderr::start(globals);
    let files = StartFiles::of(FileLoader::new().with_access(process::file_access()));
    let topology = Topology::read_in_steps(file, scenario, &files, watch.steps());
    drop(watch);
    let topology = topology.map_err(refused)?;
    let mut remarks = warn(&topology, globals);
    if let Some(scenario) = scenario.filter(|_| topology.replaced > 0) {
        let remark = format!(
            "scenario {} replaces {} of {}",
            scenario.display(),
            count_of(topology.replaced as u64, "event"),
            file.display()
        );
        start::notes([&remark], globals);
        remarks.push(remark);
    }
    let announcement = Announcement::of_network(&topology, remarks);
    Ok((topology, announcement))
}

/// Returns the error for a topology with these problems.
pub(super) fn refused(problems: Vec<Problem>) -> Error {
    let problems = problems.iter().map(ToString::to_string);
    Error::usage(problems.collect::<Vec<_>>().join("\n"))
}

/// Prints a topology's warnings, and returns them for the report.
pub(super) fn warn(topology: &Topology, globals: &Globals) -> Vec<String> {
    let warnings: Vec<String> = topology.warnings.iter().map(ToString::to_string).collect();
    start::doubt(&warnings, globals);
    warnings
}

/// Refuses single-link options combined with a topology file.
///
/// # Errors
/// If any such option is given.
pub(super) fn refuse_options_of_one_link(link: &DuplexArgs, carrier: bool) -> Result<(), Error> {
    Error::refuse_first(&[
        (
            !link.is_empty(),
            "link options do not apply to a topology; write them under [defaults] or [[link]]",
        ),
        (
            carrier,
            "--carrier is for a single link; in the file, name the links toward a port: far = \
             { opens = \"tap:lw0\", carrier = \"link.up\" }",
        ),
    ])
}

/// Returns the seed from the file or from `--seed`.
///
/// # Errors
/// If the two differ, unless `--seed` has its default value.
pub(super) fn seed(topology: &Topology, given: u64) -> Result<u64, Error> {
    match topology.seed {
        Some(seed) if given != seed && given != SEED_DEFAULT => Err(Error::usage(format!(
            "--seed conflicts with seed = {seed} in the topology; remove one"
        ))),
        Some(seed) => Ok(seed),
        None => Ok(given),
    }
}
