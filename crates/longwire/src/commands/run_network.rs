//! `longwire run FILE.toml`: runs a network from a file, until stopped.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use longwire_engine::Nanos;
use longwire_io::port::options::{CarrierControl, OpenOptions};
use longwire_io::port::registry::{self, Port};
use longwire_io::rights::Capability;
use longwire_runtime::clock::count_from_before_boot;
use longwire_runtime::fabric::{Core, FabricHandle, FabricParts, Sharding};
use longwire_runtime::host::cores;
use longwire_runtime::{Faults, FileLoader, NetworkPlan, RunningNetwork, network};
use longwire_units::number_of;

use super::run::RunArgs;
use super::run_attached::{self, NewPort, PortsInUse};
use super::run_hosts::{self, HostRun, HostWait};
use crate::cli::{DuplexArgs, RecordArgs, ReportArgs, RunningArgs, SEED_DEFAULT};
use crate::report::finish::{Ending, ReportStream, finish_as};
use crate::report::start::{self, Announcement};
use crate::report::words;
use crate::signals::stop_flag;
use crate::steps::StepsOnStderr;
use crate::watch::{Pause, until_stopped, watch};
use crate::{Error, Globals, rights, view};
use longwire_control::Bound;
use longwire_fabric::{Controller, NetworkReport, Numbered, PreparedCommand, Scenario};
use longwire_node::parent;
use longwire_topology::{Command, Problem, StartFiles, Topology};

/// Time before a command's execution at which it is prepared.
const AHEAD: Nanos = Nanos::from_secs(2);

/// The port in place of one that another host opens.
const ELSEWHERE: &str = "null";

/// Runs the network that a file describes.
///
/// # Errors
/// If the file is refused, a port cannot be opened, or the network not be
/// started.
pub fn run(file: &Path, args: &RunArgs, globals: &Globals) -> Result<ExitCode, Error> {
    refuse_options_of_one_link(&args.link)?;
    refuse_options_of_two_ports(args)?;
    let read = read(file, args.scenario.as_deref(), globals)?;
    run_topology(read, args, globals)
}

/// Runs a network. The warnings of its announcement are added to its report.
///
/// # Errors
/// If a port cannot be opened, or the network not be started.
pub(super) fn run_topology(
    (topology, announcement): (Topology, Announcement),
    args: &RunArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    if !args.control.is_given() {
        refuse_unknown_links(&topology, &args.report)?;
    }
    let stop = stop_flag()?;
    // Clients that connect before the run starts wait until it does.
    let control = longwire_control::bind(&args.control.config())?;
    let host = run_hosts::host_of(&topology, args.host.as_deref())?;
    if host.is_some() {
        // The run may have begun before this machine was started.
        count_from_before_boot();
    }
    let (mut ports, attached) = open_ports(&topology, host)?;
    let seed = seed(&topology, args.seed.seed)?;
    let hosts = match host {
        Some(host) => {
            args.running.refuse_shards()?;
            let key = args.key.as_deref();
            let wait = HostWait {
                ports: &mut ports,
                stop: &stop,
                globals,
            };
            let run = HostRun::start(&topology, (host, seed), key, wait)?;
            if let Some(required) = &args.report.require {
                run.refuse_uncertain(required)?;
            }
            Some(run)
        }
        None => None,
    };
    let has_attached = !attached.is_empty();
    let reach = hosts.as_ref().map(HostRun::reach);
    let mut attached = PortsInUse::new(attached, &topology, reach);
    let setup = NetworkSetup {
        hosts,
        seed,
        topology,
        announcement,
        stop: &stop,
        running: &args.running,
        record: &args.record,
        report: &args.report,
        // Ports at interfaces in use are attached and removed while it runs.
        gives_up: !has_attached,
    };
    let mut until = until_stopped(&stop, args.time);
    let mut report = carry(setup, ports, control, globals, &mut |running, pause| {
        attached.turn(running, pause, &mut until, globals)
    })?;
    report.run.add_closing_notes(attached.into_notes());
    finish(&report, &args.report, globals, ReportStream::Stdout)
}

/// The ports of a run, and the places of those at interfaces that are in use.
type OpenPorts = (Vec<(String, Port)>, Vec<NewPort>);

/// Opens the ports of a network, or those of one of its hosts.
fn open_ports(topology: &Topology, host: Option<usize>) -> Result<OpenPorts, Error> {
    let cluster = topology.cluster.as_ref();
    let is_here = |index: usize| {
        let owner = cluster.map(|cluster| cluster.owners[index]);
        host.is_none() || owner == host
    };
    let places = topology.attached.iter();
    let places = places.filter(|plan| is_here(usize::from(plan.port.0)));
    let count = places.clone().count();
    let (mut ports, mut attached) = (Vec::new(), Vec::new());
    for (index, port) in topology.ports.iter().enumerate() {
        let place = places
            .clone()
            .find(|plan| usize::from(plan.port.0) == index);
        let opened = match place {
            Some(plan) => {
                let (engage, opened) = run_attached::open(plan, count)?;
                attached.push(NewPort {
                    name: port.name.clone(),
                    index: plan.port,
                    engage,
                });
                opened
            }
            None if is_here(index) => {
                let carrier = match topology.carrier_of(index) {
                    Some(_) => CarrierControl::Tap,
                    None => CarrierControl::Off,
                };
                let options = OpenOptions {
                    carrier,
                    ..OpenOptions::default()
                };
                registry::open(&port.opens, &options)?
            }
            None => registry::open(ELSEWHERE, &OpenOptions::default())?,
        };
        ports.push((port.name.clone(), opened));
    }
    Ok((ports, attached))
}

/// Refuses a requirement about an unknown link before the run, rather than at
/// the end of a long one. Only the control API adds links.
fn refuse_unknown_links(topology: &Topology, args: &ReportArgs) -> Result<(), Error> {
    let Some(required) = &args.require else {
        return Ok(());
    };
    let ports = topology.ports.iter().map(|port| port.name.to_string());
    let links = topology.links.iter().flat_map(|link| match link.down {
        Some(_) => vec![format!("{}.up", link.name), format!("{}.down", link.name)],
        None => vec![link.name.to_string()],
    });
    // The report names recordings that are missing.
    let names: Vec<String> = ports.chain(links).chain(["recording".to_owned()]).collect();
    let unknown = required.unknown(names.iter().map(String::as_str));
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(Error::Usage(format!("--require: {}", unknown.join("; "))))
    }
}

/// A network that is ready to run.
pub(super) struct NetworkSetup<'a> {
    /// The network.
    pub topology: Topology,
    /// The host of the network that this machine is, if it has several.
    pub hosts: Option<HostRun>,
    /// Its description, to be printed when it runs.
    pub announcement: Announcement,
    /// Set to give up before it runs.
    pub stop: &'a Arc<AtomicBool>,
    /// The seed of every random stream.
    pub seed: u64,
    /// Execution of the network.
    pub running: &'a RunningArgs,
    /// Recordings.
    pub record: &'a RecordArgs,
    /// The report.
    pub report: &'a ReportArgs,
    /// Whether the run, once it has started, gives up its rights except those to write
    /// the report; otherwise the caller limits them. The control API limits its own.
    pub gives_up: bool,
}

/// Runs a network between open ports, with its scenario and its control API,
/// until `pause` ends it or it ends by itself.
///
/// # Errors
/// If the network cannot be started, and what `pause` returns.
pub(super) fn carry(
    setup: NetworkSetup<'_>,
    ports: Vec<(String, Port)>,
    control: Bound,
    globals: &Globals,
    pause: Pause<'_>,
) -> Result<NetworkReport, Error> {
    let faults = Faults::new();
    let scenario = setup.topology.timeline.clone();
    let mut scenario = Scenario::new(&scenario);
    let steps = StepsOnStderr::start(globals);
    steps.steps().begin("numbering links", None);
    let numbered = Numbered::new(setup.topology);
    let new_loader = || FileLoader::reporting_to(&faults).until(setup.stop);
    let loader = new_loader();
    let (bin, discarded) = channel();
    let mut parts = numbered.parts_in_steps(&loader, steps.steps(), setup.stop)?;
    let plan = numbered.shard_plan(setup.running.shards, cores());
    parts.sharding = Sharding::planned(&plan);
    follow_carriers(&numbered, &mut parts);
    let prepare = |command: &Command| numbered.plan(command, &loader, &bin);
    let given = first_commands(&mut scenario, &mut parts, prepare, setup.stop)?;
    let recorder = setup.record.network_recorder(&numbered, setup.report)?;
    let mut config = setup.running.config(setup.seed, &faults);
    let connection = setup.hosts;
    let connection = connection.map(|hosts| hosts.connect(&mut parts, &mut config));
    steps.steps().begin("starting", None);
    let running = network::start(NetworkPlan::changeable(ports, parts), config, recorder);
    drop(steps);
    let running = running?;
    setup.announcement.print(globals);
    start::notes(running.notes(), globals)?;
    print_addresses(&control, globals)?;
    let handle = running.handle().cloned();
    let handle = handle.unwrap_or_else(|| unreachable!("its plan is changeable"));
    let hosts = connection.map(|connection| connection.watch(handle.clone()));
    let hosts = hosts.transpose()?;
    let options = numbered.options();
    let controller = Arc::new(Controller::new(
        numbered,
        handle,
        new_loader(),
        (bin, discarded),
    ));
    if let Some(hosts) = &hosts {
        controller.follow_hosts(hosts.reader());
    }
    for (command, prepared) in given {
        controller.note_given(&command, prepared);
    }
    if setup.gives_up {
        rights::give_up(setup.report, &[Capability::DacOverride]);
    }
    let server = control.serve(Arc::clone(&controller))?;
    let directed = direct(&running, &mut scenario, &controller, globals, pause);
    // While the fabric still responds.
    drop(server);
    let until = controller.elapsed();
    let run = running.stop();
    let (failed, late) = directed?;
    let mut report = controller.look(|network| NetworkReport::new(run, network));
    report.set_options(&options);
    report.changes = controller.changes().until(until);
    report.run.notes.extend(setup.announcement.warnings);
    hosts.into_iter().for_each(|hosts| hosts.stop(&mut report));
    report.run.add_closing_notes(late.remark());
    report.run.error = report.run.error.or(failed);
    Ok(report)
}

/// Lets the carriers of ports follow links from the start.
fn follow_carriers(numbered: &Numbered, parts: &mut FabricParts) {
    let carriers = numbered.carriers();
    if !carriers.is_empty() {
        let follow = Box::new(|core: &mut Core, _| core.follow_carriers(carriers));
        parts.orders.push((Nanos::ZERO, follow));
    }
}

/// Executes the commands that are due soon after the fabric's start.
fn first_commands(
    scenario: &mut Scenario<'_>,
    parts: &mut FabricParts,
    prepare: impl Fn(&Command) -> Result<PreparedCommand, Box<Problem>>,
    stop: &AtomicBool,
) -> Result<Vec<(Command, PreparedCommand)>, Error> {
    let mut given = Vec::new();
    while let Some(command) = scenario.next_due(AHEAD) {
        if stop.load(Ordering::Relaxed) {
            let message = "interrupted before the network started";
            return Err(Error::Failed(message.to_owned()));
        }
        let prepared = prepare(&command);
        let mut prepared = prepared.map_err(|problem| Error::Failed(problem.to_string()))?;
        parts.orders.append(&mut prepared.operations);
        given.push((command, prepared));
    }
    Ok(given)
}

/// Prints the URLs of the page, and notes on the control API: all with `--verbose`, otherwise
/// warnings and addresses on TCP, where the system may have chosen the port.
pub(super) fn print_addresses(control: &Bound, globals: &Globals) -> io::Result<()> {
    let is_path = |note: &str| !note.contains("tcp:") && note.split(' ').count() == 2;
    let mut notes = control.notes().iter();
    notes.try_for_each(|note| {
        if is_path(note) {
            start::notes([note], globals)
        } else {
            start::note(note, globals)
        }
    })?;
    if let Some(urls) = control.view_urls() {
        view::announce(urls);
    }
    Ok(())
}

/// Reads a topology, with another scenario if one is given. Remarks are
/// printed, and returned for the report.
pub(super) fn read(
    file: &Path,
    scenario: Option<&Path>,
    globals: &Globals,
) -> Result<(Topology, Announcement), Error> {
    let watch = StepsOnStderr::start(globals);
    let files = StartFiles::of(FileLoader::new().with_access(parent::access()));
    let topology = Topology::read_in_steps(file, scenario, &files, watch.steps());
    drop(watch);
    let topology = topology.map_err(|problems| {
        let problems = problems.iter().map(ToString::to_string);
        Error::Usage(problems.collect::<Vec<_>>().join("\n"))
    })?;
    let mut remarks = warn(&topology, globals)?;
    if let Some(scenario) = scenario.filter(|_| topology.replaced > 0) {
        let remark = format!(
            "the scenario is {}, in place of {} of {}",
            scenario.display(),
            number_of(topology.replaced as u64, "event"),
            file.display()
        );
        start::notes([&remark], globals)?;
        remarks.push(remark);
    }
    let announcement = Announcement::of_network(&topology, remarks);
    Ok((topology, announcement))
}

/// Prints the warnings of a topology's reader, and returns them for the report.
pub(super) fn warn(topology: &Topology, globals: &Globals) -> Result<Vec<String>, Error> {
    let warnings: Vec<String> = topology.warnings.iter().map(ToString::to_string).collect();
    start::doubt(&warnings, globals);
    Ok(warnings)
}

/// Writes the report of a network, and checks its requirements.
pub(super) fn finish(
    report: &NetworkReport,
    args: &ReportArgs,
    globals: &Globals,
    place: ReportStream,
) -> Result<ExitCode, Error> {
    let ending = Ending {
        changes: report.changes.clone(),
        ..Ending::of(&report.run)
    };
    finish_as(report, &ending, args, globals, place)
}

/// Refuses options of a single link next to a topology file.
///
/// # Errors
/// If there are any.
pub(super) fn refuse_options_of_one_link(link: &DuplexArgs) -> Result<(), Error> {
    if !link.is_empty() {
        return Err(Error::Usage(
            "options of a link are written in the file, under [defaults] or a [[link]]".to_owned(),
        ));
    }
    Ok(())
}

/// Refuses options that require a link between two ports.
fn refuse_options_of_two_ports(args: &RunArgs) -> Result<(), Error> {
    refuse_carrier(args.carrier)?;
    let given = [
        (args.one_way, "--one-way"),
        (args.gap_frames.is_some(), "--gap-frames"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Error::Usage(format!(
            "{option} is for a link between two ports"
        ))),
        None => Ok(()),
    }
}

/// Refuses `--carrier` next to a topology file.
///
/// # Errors
/// If it is given.
pub(super) fn refuse_carrier(given: bool) -> Result<(), Error> {
    if given {
        return Err(Error::Usage(
            "--carrier is for a single link; in the file, name the links toward a port: \
             far = { opens = \"tap:lw0\", carrier = \"link.up\" }"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Refuses `--carrier` for a link that is never down.
///
/// # Errors
/// If it is given.
pub(super) fn refuse_idle_carrier(given: bool, add: &str) -> Result<(), Error> {
    if given {
        return Err(Error::Usage(format!(
            "--carrier is for a link that goes down, and nothing changes this one: add {add}"
        )));
    }
    Ok(())
}

/// Returns the seed of the file, or the one of `--seed`.
pub(super) fn seed(topology: &Topology, given: u64) -> Result<u64, Error> {
    match topology.seed {
        Some(seed) if given != seed && given != SEED_DEFAULT => Err(Error::Usage(format!(
            "the file has seed = {seed}; remove it to give another on the command line"
        ))),
        Some(seed) => Ok(seed),
        None => Ok(given),
    }
}

/// Runs the scenario until `pause` ends the run, or it ends by itself. Returns
/// the first of its commands that failed; the others are still run.
fn direct(
    running: &RunningNetwork,
    scenario: &mut Scenario<'_>,
    controller: &Controller,
    globals: &Globals,
    pause: Pause<'_>,
) -> Result<(Option<String>, LateCommands), Error> {
    let mut failed = None;
    let mut late = LateCommands::default();
    let mut reported = 0;
    if running.ended() {
        return Ok((failed, late));
    }
    watch(running, pause, || {
        // One by one: a scenario may have any number of them.
        let skipped = controller.scenario_ahead();
        let until = controller
            .elapsed()
            .saturating_add(AHEAD)
            .saturating_add(skipped);
        if let Some(mut command) = scenario.next_due(until) {
            let at = command.at.unwrap_or(Nanos::ZERO);
            controller.scenario_given(at);
            let at = at.saturating_sub(skipped);
            command.at = command.at.map(|_| at);
            if let Err(problem) = controller.schedule(&command) {
                failed.get_or_insert(format!("scenario at {at}: {problem}"));
            }
            // Checked afterwards: preparing the command may have taken too
            // long.
            late.note(at, controller.elapsed());
            return true;
        }
        controller.scenario_given(until);
        controller.tidy();
        warn_of_lost_ports(running, &mut reported, globals);
        false
    })?;
    warn_of_lost_ports(running, &mut reported, globals);
    Ok((failed, late))
}

/// Prints which ports went away, except the first `reported` ones.
fn warn_of_lost_ports(running: &RunningNetwork, reported: &mut usize, globals: &Globals) {
    let lost = running.handle().map(FabricHandle::lost_ports);
    let lost = lost.unwrap_or_default();
    for (name, port) in lost.iter().skip(*reported) {
        let remark = format!(
            "port {name} went away: {}; the run goes on without it",
            port.error
        );
        // A closed terminal is no reason to end the run.
        let _ = start::warn(std::slice::from_ref(&remark), globals);
    }
    *reported = lost.len();
}

/// Commands of the scenario that were executed late, because preparing them
/// took too long.
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

    /// Returns a sentence for the report, if there were any.
    fn remark(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "the scenario fell behind: {} of its commands were done late, by up to {}",
                words::count(self.count),
                words::micros(self.most.as_micros_f64())
            )
        })
    }
}
