//! `longwire run FILE.toml`: a whole network from a file, until stopped.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_engine::{LinkOptions, Nanos};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_runtime::fabric::{FabricParts, FabricRunning, start_recorded};
use longwire_runtime::{Faults, FileLoader};

use super::run::RunArgs;
use crate::cli::{ReportArgs, SEED_DEFAULT};
use crate::fabric::{
    Controller, NetworkRecorder, NetworkReport, Numbered, Prepared, Scenario, write_text,
};
use crate::report::finish::{Place, finish_with};
use crate::report::{start, text};
use crate::signals::stop_flag;
use crate::steps::StepsOnStderr;
use crate::topology::{Command, Problem, Topology};
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
    let read = read(file, args.scenario.as_deref(), globals)?;
    run_topology(read, args, globals)
}

/// Runs a network. What was remarked about it goes into its report.
///
/// # Errors
/// If a port cannot be opened, or the network not be started.
pub(super) fn run_topology(
    (topology, remarks): (Topology, Vec<String>),
    args: &RunArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let stop = stop_flag()?;
    // Before anything runs: whoever connects waits until it does.
    let control = control::bind(&args.control)?;
    let mut ports = Vec::new();
    for port in &topology.ports {
        let opened = registry::open(&port.opens, &OpenOptions::default())?;
        ports.push((port.name.clone(), opened));
    }
    let faults = Faults::new();
    let seed = seed(&topology, args.seed.seed)?;
    let scenario = topology.timeline.clone();
    let mut scenario = Scenario::new(&scenario);
    let watch = StepsOnStderr::start(globals);
    watch.steps().begin("numbering links", None);
    let network = Numbered::new(topology);
    let new_loader = || FileLoader::reporting_to(&faults).until(&stop);
    let loader = new_loader();
    let (bin, discarded) = channel();
    let mut parts = network.parts_in_steps(&loader, watch.steps(), &stop)?;
    let prepare = |command: &Command| network.works(command, &loader, &bin);
    let given = first_commands(&mut scenario, &mut parts, prepare, &stop)?;
    let recorder = NetworkRecorder::create(
        args.record.capture.as_deref(),
        args.record.log.as_ref(),
        &network,
    )?;
    let config = args.running.config(seed, &faults);
    watch.steps().begin("starting", None);
    let running = start_recorded(ports, parts, config, recorder);
    drop(watch);
    let running = running.map_err(|error| Error::Failed(error.to_string()))?;
    start::notes(running.handle().notes(), globals)?;
    start::notes(control.notes(), globals)?;
    let handle = running.handle().clone();
    let controller = Arc::new(Controller::new(
        network,
        handle,
        new_loader(),
        (bin, discarded),
    ));
    for (command, prepared) in given {
        controller.note_given(&command, prepared);
    }
    let server = control.serve(Arc::clone(&controller))?;
    let (failed, late) = direct(
        &running,
        &mut scenario,
        &controller,
        &stop,
        (args.time, globals),
    );
    // While the fabric still answers.
    drop(server);
    let until = controller.elapsed();
    let fabric = running.stop();
    let mut report = controller.look(|network| NetworkReport::new(fabric, network));
    report.changes = controller.changes().until(until);
    report.fabric.notes.extend(remarks);
    report.fabric.notes.extend(late.remark());
    report.fabric.error = report.fabric.error.or(failed);
    finish(&report, &args.report, globals, Place::Stdout)
}

/// Has the fabric do the commands that are due soon after its start.
fn first_commands(
    scenario: &mut Scenario<'_>,
    parts: &mut FabricParts,
    prepare: impl Fn(&Command) -> Result<Prepared, Problem>,
    stop: &AtomicBool,
) -> Result<Vec<(Command, Prepared)>, Error> {
    let mut given = Vec::new();
    while let Some(command) = scenario.next_due(AHEAD) {
        if stop.load(Ordering::Relaxed) {
            let message = "interrupted before the network started";
            return Err(Error::Failed(message.to_owned()));
        }
        let prepared = prepare(&command);
        let mut prepared = prepared.map_err(|problem| Error::Failed(problem.to_string()))?;
        parts.orders.append(&mut prepared.works);
        given.push((command, prepared));
    }
    Ok(given)
}

/// Reads a topology, with another scenario if one is given. What there is to
/// remark is said, and returned for the report.
pub(super) fn read(
    file: &Path,
    scenario: Option<&Path>,
    globals: &Globals,
) -> Result<(Topology, Vec<String>), Error> {
    let watch = StepsOnStderr::start(globals);
    let topology = Topology::read_in_steps(file, scenario, watch.steps());
    drop(watch);
    let topology = topology.map_err(|problems| {
        let problems = problems.iter().map(ToString::to_string);
        Error::Usage(problems.collect::<Vec<_>>().join("\n"))
    })?;
    let mut remarks = warn(&topology, globals)?;
    if let Some(scenario) = scenario.filter(|_| topology.replaced > 0) {
        let remark = format!(
            "the scenario is {}; the {} events of {} do not happen",
            scenario.display(),
            topology.replaced,
            file.display()
        );
        start::notes([&remark], globals)?;
        remarks.push(remark);
    }
    Ok((topology, remarks))
}

/// Says what a topology's reader warned of, and returns it for the report.
pub(super) fn warn(topology: &Topology, globals: &Globals) -> Result<Vec<String>, Error> {
    let warnings: Vec<String> = topology.warnings.iter().map(ToString::to_string).collect();
    start::warn(&warnings, globals)?;
    Ok(warnings)
}

/// Writes the report of a network, and judges it.
pub(super) fn finish(
    report: &NetworkReport,
    args: &ReportArgs,
    globals: &Globals,
    place: Place,
) -> Result<ExitCode, Error> {
    let text = |out: &mut Vec<u8>, paint| write_text(out, report, paint);
    finish_with(report, &report.judged(), text, args, globals, place)
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
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::Usage((*why).to_owned())),
        None => Ok(()),
    }
}

/// The seed of the file, or the one that was given.
pub(super) fn seed(topology: &Topology, given: u64) -> Result<u64, Error> {
    match topology.seed {
        Some(seed) if given != seed && given != SEED_DEFAULT => Err(Error::Usage(format!(
            "the file has seed = {seed}; take it out to give another on the command line"
        ))),
        Some(seed) => Ok(seed),
        None => Ok(given),
    }
}

/// Waits until the run ends by itself, is told to stop, or its time is over.
/// Says what of the scenario could not be done first; the rest of it goes on.
fn direct(
    running: &FabricRunning,
    scenario: &mut Scenario<'_>,
    controller: &Controller,
    stop: &AtomicBool,
    (time, globals): (Option<Nanos>, &Globals),
) -> (Option<String>, LateCommands) {
    let started = Instant::now();
    let time = time.map(|time| Duration::from_nanos(time.as_nanos()));
    let mut failed = None;
    let mut late = LateCommands::default();
    let mut told = 0;
    while !stop.load(Ordering::Relaxed) && !running.ended() {
        let left = time.map_or(LOOK, |time| time.saturating_sub(started.elapsed()));
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(LOOK));
        let until = controller.elapsed().saturating_add(AHEAD);
        while let Some(command) = scenario.next_due(until) {
            // One by one: a scenario may have any number of them.
            let over = time.is_some_and(|time| started.elapsed() >= time);
            if over || stop.load(Ordering::Relaxed) || running.ended() {
                break;
            }
            late.note(command.at.unwrap_or(Nanos::ZERO), controller.elapsed());
            if let Err(problem) = controller.schedule(&command) {
                let at = command.at.unwrap_or(Nanos::ZERO);
                failed.get_or_insert(format!("scenario at {at}: {problem}"));
            }
        }
        controller.tidy();
        let lost = running.handle().lost_ports();
        for (name, port) in lost.iter().skip(told) {
            let remark = format!(
                "port {name} went away: {}; the run goes on without it",
                port.error
            );
            // A terminal that is gone is no reason to end the run.
            let _ = start::warn(std::slice::from_ref(&remark), globals);
        }
        told = lost.len();
    }
    (failed, late)
}

/// Commands of the scenario that were done after their time, because preparing
/// them took longer than there was.
#[derive(Debug, Default)]
struct LateCommands {
    count: u64,
    most: Nanos,
}

impl LateCommands {
    fn note(&mut self, at: Nanos, now: Nanos) {
        if at < now {
            self.count += 1;
            self.most = self.most.max(now.saturating_sub(at));
        }
    }

    /// A sentence for the report, if there were any.
    fn remark(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "the scenario fell behind: {} of its commands were done late, by up to {}",
                text::count(self.count),
                text::micros(self.most.as_micros_f64())
            )
        })
    }
}
