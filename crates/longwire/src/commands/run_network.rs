//! `longwire run FILE.toml`: a whole network from a file, until stopped.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_engine::{LinkOptions, Nanos};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_runtime::fabric::{FabricRunning, start as start_fabric};
use longwire_runtime::{Faults, FileLoader};

use super::run::RunArgs;
use crate::cli::{Paint, SEED_DEFAULT};
use crate::error::{EXIT_FAILED, EXIT_FIDELITY};
use crate::fabric::{Controller, NetworkReport, Numbered, write_text};
use crate::report::start;
use crate::signals::stop_flag;
use crate::topology::{Command, Timeline, Topology};
use crate::{Error, Globals, control};

/// Commands of the scenario are prepared so long before their time.
const AHEAD: Nanos = Nanos::from_secs(2);

/// How soon a signal is seen, and the scenario looked at again.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the network that a file describes.
///
/// # Errors
/// If the file is refused, a port cannot be opened, or the network not be
/// started.
pub fn run(file: &Path, args: &RunArgs, globals: &Globals) -> Result<ExitCode, Error> {
    refuse_options_of_one_link(args)?;
    let topology = Topology::read(file).map_err(|problems| {
        let problems = problems.iter().map(ToString::to_string);
        Error::Usage(problems.collect::<Vec<_>>().join("\n"))
    })?;
    run_topology(topology, args, globals)
}

/// Runs a network.
///
/// # Errors
/// If a port cannot be opened, or the network not be started.
pub(super) fn run_topology(
    topology: Topology,
    args: &RunArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let warnings: Vec<String> = topology.warnings.iter().map(ToString::to_string).collect();
    start::warn(&warnings, globals)?;
    let stop = stop_flag()?;
    // Before anything runs: whoever connects waits until it does.
    let control = control::bind(&args.control)?;
    let mut ports = Vec::new();
    for port in &topology.ports {
        let opened = registry::open(&port.opens, &OpenOptions::default())?;
        ports.push((port.name.clone(), opened));
    }
    let faults = Faults::new();
    let seed = seed(&topology, args)?;
    let scenario = topology.timeline.clone();
    let mut scenario = Scenario::new(&scenario);
    let network = Numbered::new(topology);
    let loader = FileLoader::reporting_to(&faults);
    let (bin, discarded) = channel();
    let mut parts = network.parts(&loader)?;
    let mut given = Vec::new();
    for command in scenario.due(AHEAD) {
        let mut prepared = network
            .works(&command, &loader, &bin)
            .map_err(|problem| Error::Failed(problem.to_string()))?;
        parts.orders.append(&mut prepared.works);
        given.push((command, prepared));
    }
    let running = start_fabric(ports, parts, args.running.config(seed, &faults))
        .map_err(|error| Error::Failed(error.to_string()))?;
    start::notes(running.handle().notes(), globals)?;
    start::notes(control.notes(), globals)?;
    let handle = running.handle().clone();
    let controller = Arc::new(Controller::new(network, handle, &faults, (bin, discarded)));
    for (command, prepared) in given {
        controller.note_given(&command, prepared);
    }
    let server = control.serve(Arc::clone(&controller))?;
    let failed = direct(&running, &mut scenario, &controller, &stop, args.time);
    // While the fabric still answers.
    drop(server);
    let fabric = running.stop();
    let mut report = controller.look(|network| NetworkReport::new(fabric, network));
    report.fabric.notes.extend(warnings);
    report.fabric.error = report.fabric.error.or(failed);
    finish(&report, args, globals)
}

/// What a run of one link takes and a network does not is refused rather than
/// forgotten.
fn refuse_options_of_one_link(args: &RunArgs) -> Result<(), Error> {
    let link = &args.link;
    let nothing = LinkOptions::default();
    let given = [
        (
            link.up != nothing || link.down != nothing || link.preset.is_some(),
            "options of a link are written in the file, under [defaults] or a [[link]]",
        ),
        (args.one_way, "--one-way is for a link between two ports"),
        (
            args.gap_frames.is_some(),
            "--gap-frames is for a link between two ports",
        ),
        (
            args.record.capture.is_some() || args.record.log.is_some(),
            "--capture and --log are for a link between two ports; tcpdump at the ports, and \
             --json for what each link did, do for a network",
        ),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::Usage((*why).to_owned())),
        None => Ok(()),
    }
}

/// The seed of the file, or the one that was given.
fn seed(topology: &Topology, args: &RunArgs) -> Result<u64, Error> {
    let given = args.seed.seed;
    match topology.seed {
        Some(seed) if given != seed && given != SEED_DEFAULT => Err(Error::Usage(format!(
            "the file has seed = {seed}; take it out to give another on the command line"
        ))),
        Some(seed) => Ok(seed),
        None => Ok(given),
    }
}

/// Reads the scenario ahead of time.
struct Scenario<'a> {
    commands: std::iter::Peekable<Box<dyn Iterator<Item = Command> + 'a>>,
}

impl<'a> Scenario<'a> {
    fn new(timeline: &'a Timeline) -> Scenario<'a> {
        let commands: Box<dyn Iterator<Item = Command>> = Box::new(timeline.commands());
        Scenario {
            commands: commands.peekable(),
        }
    }

    /// The commands of times up to `until` that have not been given.
    fn due(&mut self, until: Nanos) -> Vec<Command> {
        let due = |command: &Command| command.at.is_none_or(|at| at <= until);
        std::iter::from_fn(|| self.commands.next_if(due)).collect()
    }
}

/// Waits until the run ends by itself, is told to stop, or its time is over.
/// Says what of the scenario could not be done first; the rest of it goes on.
fn direct(
    running: &FabricRunning,
    scenario: &mut Scenario<'_>,
    controller: &Controller,
    stop: &AtomicBool,
    time: Option<Nanos>,
) -> Option<String> {
    let started = Instant::now();
    let time = time.map(|time| Duration::from_nanos(time.as_nanos()));
    let mut failed = None;
    while !stop.load(Ordering::Relaxed) && !running.ended() {
        let left = time.map_or(LOOK, |time| time.saturating_sub(started.elapsed()));
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(LOOK));
        for command in scenario.due(controller.elapsed().saturating_add(AHEAD)) {
            if let Err(problem) = controller.schedule(&command) {
                let at = command.at.unwrap_or(Nanos::ZERO);
                failed.get_or_insert(format!("scenario at {at}: {problem}"));
            }
        }
        controller.tidy();
    }
    failed
}

fn finish(report: &NetworkReport, args: &RunArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let json = |out: &mut dyn Write| -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, report)?;
        writeln!(out)
    };
    if let Some(path) = &args.report.report {
        let written = std::fs::File::create(path).and_then(|mut file| json(&mut file));
        written.map_err(|source| Error::File {
            path: path.clone(),
            action: "cannot write the report",
            source,
        })?;
    }
    match globals.json {
        true => json(&mut io::stdout().lock())?,
        false => write_text(&mut io::stdout().lock(), report)?,
    }
    let judged = report.judged();
    let required = args.report.require.as_ref();
    let unmet = required
        .map(|required| required.unmet(&judged))
        .unwrap_or_default();
    let mut err = io::stderr();
    let paint = Paint::new(globals, &err);
    for clause in &unmet {
        writeln!(err, "{} {clause}", paint.warn("not met:"))?;
    }
    Ok(match (&report.fabric.error, unmet.is_empty()) {
        (Some(error), _) => {
            if globals.json {
                writeln!(err, "error: {error}")?;
            }
            ExitCode::from(EXIT_FAILED)
        }
        (None, false) => ExitCode::from(EXIT_FIDELITY),
        (None, true) => ExitCode::SUCCESS,
    })
}
