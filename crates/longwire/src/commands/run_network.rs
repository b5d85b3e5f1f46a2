//! Runs a network, from topology to report.

use std::mem::{ManuallyDrop, forget};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use longwire_control::Bound;
use longwire_engine::{LinkSpec, Nanos};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::options::{CarrierControl, OpenOptions, Purpose};
use longwire_io::port::registry::{self, AnyRx, AnyTx, Port};
use longwire_io::rights::Capability;
use longwire_network::{Controller, NetworkReport, Numbered, PreparedCommand, Scenario};
use longwire_runtime::clock::count_from_before_boot;
use longwire_runtime::deciding::{Core, NetworkHandle, NetworkParts};
use longwire_runtime::host::cores;
use longwire_runtime::{Faults, FileLoader, NetworkPlan, RunReport, RunningNetwork, network};
use longwire_topology::{Command, Problem, Topology};
use serde::Serialize;

use super::run::RunArgs;
use super::run_attached::{self, NewPort, PortsInUse};
use super::run_hosts::{self, HostRun};
use super::topologies::{ReadTopology, seed};
use crate::cli::{LiveArgs, ReportArgs};
use crate::probe::ProbeResult;
use crate::progress::StepsOnStderr;
use crate::report::{self, Announcement, Ending, Live, ReportStream, RunKind, start, words};
use crate::signals::stop_flag;
use crate::watch::{until_stopped, watch};
use crate::{Error, Globals, rights, view};

/// Lead time for preparing a command before it is due.
const AHEAD: Nanos = Nanos::from_secs(2);

/// Placeholder for a port opened by another host.
const ELSEWHERE: &str = "null";

/// Runs a network until it is stopped.
///
/// # Errors
/// If a port cannot be opened, or the network cannot be started.
pub(super) fn run(
    (topology, announcement): ReadTopology,
    args: &RunArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let stop = stop_flag()?;
    // Bind early: clients that connect before the run starts then wait for it.
    let control = longwire_control::bind(&args.live.control.config())?;
    let host = run_hosts::host_of(&topology, args.host.as_deref())?;
    if host.is_some() {
        // The epoch may precede this machine's boot.
        count_from_before_boot();
    }
    let (mut ports, attached) = open_ports(&topology, host, args)?;
    let seed = seed(&topology, args.live.seed.seed)?;
    let hosts = match host {
        Some(host) => {
            args.live.running.refuse_shards(
                "a network divided among hosts cannot be sharded; remove --shards",
            )?;
            let mut run = HostRun::start(&topology, (host, seed), args.key.as_deref())?;
            run.wait_for_epoch(&mut ports, &stop, globals)?;
            if let Some(required) = &args.live.report.require {
                run.refuse_uncertain(required)?;
            }
            Some(run)
        }
        None => None,
    };
    let has_attached = !attached.is_empty();
    let mut attached = PortsInUse {
        until: Box::new(until_stopped(&stop, args.time)),
        globals,
        waiting: attached,
        ports: Vec::new(),
        left: Vec::new(),
        on_loss: topology.on_port_loss,
        others: hosts.as_ref().map(|run| run.others.clone()),
        switching: topology.bridge.switching.clone(),
        notes: Vec::new(),
    };
    let setup = NetworkSetup {
        hosts,
        // Ports at interfaces in use are attached and detached during the run, which needs
        // privileges.
        gives_up: !has_attached,
        shows_progress: true,
        ..NetworkSetup::new((topology, announcement), &stop, &args.live)
    };
    let report = carry(setup, ports, control, globals, &mut attached)?;
    // The process ends soon. Freeing the reports of 100,000 links would take 0.1 s.
    let mut report = ManuallyDrop::new(report);
    report.run.add_closing_notes(attached.notes);
    let args = &args.live.report;
    finish(None, &report, args, globals, ReportStream::Stdout)
}

/// Ports of a run, and the attachment points of its ports at interfaces in use.
type OpenPorts = (Vec<(String, Port)>, Vec<NewPort>);

/// Opens the ports of a network, or of one of its hosts.
fn open_ports(
    topology: &Topology,
    host: Option<usize>,
    args: &RunArgs,
) -> Result<OpenPorts, Error> {
    let cluster = topology.cluster.as_ref();
    let is_here = |index: usize| {
        let owner = cluster.map(|cluster| cluster.owners[index]);
        host.is_none() || owner == host
    };
    let attached = topology.attached.iter();
    let indices = attached.map(|plan| usize::from(plan.port.0));
    let count = indices.filter(|index| is_here(*index)).count();
    let (mut ports, mut attached) = (Vec::new(), Vec::new());
    for (index, port) in topology.ports.iter().enumerate() {
        let mut places = topology.attached.iter();
        let opened = match places.find(|plan| usize::from(plan.port.0) == index) {
            _ if !is_here(index) => registry::open(ELSEWHERE, &OpenOptions::default())?,
            Some(plan) => {
                let (engage, opened) = run_attached::open(plan, count)?;
                attached.push(NewPort {
                    name: port.name.clone(),
                    index: plan.port,
                    engage,
                });
                opened
            }
            None => open_port(index, &port.opens, topology, args)?,
        };
        ports.push((port.name.clone(), opened));
    }
    Ok((ports, attached))
}

fn open_port(
    index: usize,
    opens: &str,
    topology: &Topology,
    args: &RunArgs,
) -> Result<Port, Error> {
    let purpose = match index {
        _ if !args.one_way => Purpose::Forward,
        0 => Purpose::ForwardIn,
        _ => Purpose::Send,
    };
    let carrier = match topology.carrier_of(index) {
        Some(_) => CarrierControl::Tap,
        None => CarrierControl::Off,
    };
    let options = OpenOptions {
        carrier,
        purpose,
        gap_frames: args.gap_frames.filter(|_| purpose != Purpose::ForwardIn),
        ..OpenOptions::default()
    };
    let mut port = registry::open(opens, &options)?;
    match purpose {
        Purpose::Send => port.rx = AnyRx::Silent(SilentRx),
        // Discard a router's replies, which have no return path.
        Purpose::ForwardIn => port.tx = AnyTx::Discard(DiscardTx::default()),
        Purpose::Forward | Purpose::Receive => {}
    }
    Ok(port)
}

/// Refuses requirements that the network cannot meet. Only the control API can add links later.
pub(super) fn refuse_unmeetable(
    network: &Numbered,
    report: &ReportArgs,
    is_fixed: bool,
) -> Result<(), Error> {
    let ports: Vec<&str> = port_names_of(network).collect();
    let links: Vec<&str> = names_of(network).collect();
    let kind = RunKind {
        is_fixed,
        ..RunKind::default()
    };
    report.refuse_unmeetable(&ports, &links, kind)
}

pub(super) fn port_names_of(network: &Numbered) -> impl Iterator<Item = &str> {
    let ports = network.topology().ports.iter();
    ports.map(|port| port.name.as_str())
}

/// Returns the names of all link directions.
pub(super) fn names_of(network: &Numbered) -> impl Iterator<Item = &str> {
    network.links().iter().map(|link| link.name.as_str())
}

/// A network that is ready to run.
pub(super) struct NetworkSetup<'a> {
    /// Network to run.
    pub topology: Topology,
    /// Host run by this machine, in a multi-host network.
    pub hosts: Option<HostRun>,
    /// Description to print once the network runs; a single link is described later.
    pub announcement: Announcement,
    /// Set to abort the run before it starts.
    pub stop: &'a Arc<AtomicBool>,
    /// Options of the live run.
    pub args: &'a LiveArgs,
    /// Whether the started run drops all privileges not needed to write the report. Otherwise the
    /// caller drops them. The control API drops its own.
    pub gives_up: bool,
    /// Whether to show progress on a terminal.
    pub shows_progress: bool,
}

impl<'a> NetworkSetup<'a> {
    /// Returns the whole network; its run keeps all privileges and shows no progress.
    pub fn new(
        (topology, announcement): ReadTopology,
        stop: &'a Arc<AtomicBool>,
        args: &'a LiveArgs,
    ) -> NetworkSetup<'a> {
        NetworkSetup {
            topology,
            hosts: None,
            announcement,
            stop,
            args,
            gives_up: false,
            shows_progress: false,
        }
    }
}

/// Callbacks of a command during its run.
pub(super) trait Lifecycle {
    /// Attaches ports once the network runs. The run is announced, and the control API answers,
    /// only after this call, so traffic sent after an answer passes through the links.
    ///
    /// # Errors
    /// If a port cannot be attached.
    fn begin(&mut self) -> Result<(), Error>;

    /// Waits at most `pause`; returns whether the run is over.
    ///
    /// # Errors
    /// Any error that ends the run.
    fn pause(&mut self, running: &RunningNetwork, pause: Duration) -> Result<bool, Error>;
}

impl<F: FnMut(&RunningNetwork, Duration) -> Result<bool, Error>> Lifecycle for F {
    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn pause(&mut self, running: &RunningNetwork, pause: Duration) -> Result<bool, Error> {
        self(running, pause)
    }
}

/// Runs a network between open ports, with its scenario and control API, until it ends or
/// `lifecycle` ends it.
///
/// # Errors
/// If the network cannot be started, or `lifecycle` fails.
pub(super) fn carry(
    mut setup: NetworkSetup<'_>,
    ports: Vec<(String, Port)>,
    control: Bound,
    globals: &Globals,
    lifecycle: &mut dyn Lifecycle,
) -> Result<NetworkReport, Error> {
    let args = setup.args;
    let seed = seed(&setup.topology, args.seed.seed)?;
    let faults = Faults::new();
    let scenario = setup.topology.timeline.clone();
    let has_clients = control.takes_clients();
    let may_change = has_clients || !scenario.events.is_empty();
    // Ports at interfaces in use are removed only after their frames have drained.
    let is_fixed = !may_change && setup.topology.attached.is_empty();
    let mut scenario = Scenario::new(&scenario);
    let steps = StepsOnStderr::start(globals);
    steps.steps().begin("numbering links", None);
    let numbered = Numbered::new(setup.topology);
    refuse_unmeetable(&numbered, &args.report, !has_clients)?;
    let new_loader = || FileLoader::reporting_to(&faults).until(setup.stop);
    let loader = new_loader();
    let (bin, discarded) = channel();
    let mut parts = numbered.parts_in_steps(&loader, steps.steps(), setup.stop)?;
    parts.sharding = numbered.shard_plan(args.running.shards, cores()).sharding();
    describe_link(&mut setup.announcement, &numbered, &parts, globals);
    follow_carriers(&numbered, &mut parts);
    let prepare = |command: &Command| numbered.plan(command, &loader, &bin);
    let given = first_commands(&mut scenario, &mut parts, prepare, setup.stop)?;
    let names = (port_names_of(&numbered), names_of(&numbered));
    let recorder = args.record.recorder(names, &args.report)?;
    let mut config = args.running.config(seed, &faults);
    let run = setup.hosts.iter_mut();
    run.for_each(|run| run.connect(&mut parts, &mut config));
    steps.steps().begin("starting", None);
    let plan = plan(ports, parts, &numbered, is_fixed);
    let running = network::start(plan, config, recorder)?;
    lifecycle.begin()?;
    drop(steps);
    setup.announcement.print(globals);
    start::notes(running.notes(), globals);
    print_addresses(&control, globals);
    let handle = running.handle().cloned();
    let handle = handle.unwrap_or_else(|| running.observer());
    let hosts = setup.hosts.map(|run| run.watch(handle.clone()));
    let hosts = hosts.transpose()?;
    let options = numbered.options();
    let drops = (bin, discarded);
    let controller = Arc::new(Controller::new(numbered, handle, new_loader(), drops));
    if let Some(hosts) = &hosts {
        controller.follow_hosts(hosts.reader.clone());
    }
    for (command, prepared) in given {
        controller.note_given(&command, prepared);
    }
    if setup.gives_up {
        rights::give_up(&args.report, rights_of_changes(may_change));
    }
    let server = control.serve(Arc::clone(&controller))?;
    let live = setup.shows_progress.then(|| Live::new(globals));
    let script = (&mut scenario, &*controller);
    let directed = direct(&running, script, live, globals, lifecycle);
    // Drop the server while the network still answers requests.
    drop(server);
    let mut report = stop(running, controller, &options);
    explain(&mut report.run, directed?);
    report.run.notes.extend(setup.announcement.warnings);
    hosts.into_iter().for_each(|hosts| hosts.stop(&mut report));
    Ok(report)
}

/// Stops a run and returns its report. The process ends soon, so the links are not freed.
fn stop(
    running: RunningNetwork,
    controller: Arc<Controller>,
    options: &[Arc<LinkSpec>],
) -> NetworkReport {
    let report = NetworkReport::stop(running, &controller, options);
    controller.tidy();
    forget(controller);
    report
}

/// Adds the scenario's failed and late commands to the report.
fn explain(run: &mut RunReport, (failed, late): (Option<String>, LateCommands)) {
    run.add_closing_notes(late.remark());
    run.error = run.error.take().or(failed);
}

/// Plans a network. `is_fixed` means that only its scenario can change it.
fn plan(
    ports: Vec<(String, Port)>,
    parts: NetworkParts,
    numbered: &Numbered,
    is_fixed: bool,
) -> NetworkPlan {
    if is_fixed {
        NetworkPlan::fixed(ports, parts, names_of(numbered).map(str::to_owned))
    } else {
        NetworkPlan::changeable(ports, parts)
    }
}

/// Describes the only link of a network if its announcement does not.
pub(super) fn describe_link(
    announcement: &mut Announcement,
    numbered: &Numbered,
    parts: &NetworkParts,
    globals: &Globals,
) {
    if announcement.lacks_links() {
        let configs = parts.links.iter().map(|(config, _)| config);
        announcement.add_links(names_of(numbered).zip(configs), globals);
    }
}

/// Returns the capabilities needed for network changes, which may name other users' files.
pub(super) fn rights_of_changes(may_change: bool) -> &'static [Capability] {
    if may_change {
        &[Capability::DacOverride]
    } else {
        &[]
    }
}

/// Makes port carriers follow their links from the start.
fn follow_carriers(numbered: &Numbered, parts: &mut NetworkParts) {
    let carriers = numbered.carriers();
    if !carriers.is_empty() {
        let follow = Box::new(|core: &mut Core, _| core.follow_carriers(carriers));
        parts.orders.push((Nanos::ZERO, follow));
    }
}

/// Executes the commands due soon after the start of the network.
fn first_commands(
    scenario: &mut Scenario<'_>,
    parts: &mut NetworkParts,
    prepare: impl Fn(&Command) -> Result<PreparedCommand, Box<Problem>>,
    stop: &AtomicBool,
) -> Result<Vec<(Command, PreparedCommand)>, Error> {
    let mut given = Vec::new();
    while let Some(command) = scenario.next_due(AHEAD) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::failed("interrupted before the network started"));
        }
        let mut prepared = prepare(&command).map_err(Error::failed)?;
        parts.orders.append(&mut prepared.operations);
        given.push((command, prepared));
    }
    Ok(given)
}

/// Prints page URLs and notes on the control API: all notes with `--verbose`, otherwise only
/// warnings and TCP addresses, whose port the system may have chosen.
pub(super) fn print_addresses(control: &Bound, globals: &Globals) {
    let is_path = |note: &str| !note.contains("tcp:") && note.split(' ').count() == 2;
    for note in control.notes() {
        if is_path(note) {
            start::notes([note], globals);
        } else {
            start::note(note, globals);
        }
    }
    if let Some(urls) = control.view_urls() {
        view::announce(urls);
    }
}

/// Writes the report of a network (JSON includes the probe's results) and checks its requirements.
///
/// # Errors
/// If it cannot be written.
pub(super) fn finish(
    probe: Option<&ProbeResult>,
    report: &NetworkReport,
    args: &ReportArgs,
    globals: &Globals,
    place: ReportStream,
) -> Result<ExitCode, Error> {
    let ending = Ending {
        place,
        changes: report.changes.clone(),
        ..Ending::of(&report.run)
    };
    report::finish(&Probed { probe, report }, &ending, args, globals)
}

/// A report with optional probe results.
#[derive(Serialize)]
struct Probed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<&'a ProbeResult>,
    #[serde(flatten)]
    report: &'a NetworkReport,
}

/// Runs the scenario until the run ends or `lifecycle` ends it. Returns the first failed command;
/// later commands still run.
fn direct(
    running: &RunningNetwork,
    (scenario, controller): (&mut Scenario<'_>, &Controller),
    mut live: Option<Live>,
    globals: &Globals,
    lifecycle: &mut dyn Lifecycle,
) -> Result<(Option<String>, LateCommands), Error> {
    let mut failed = None;
    let mut late = LateCommands::default();
    let mut reported = 0;
    if running.ended() {
        return Ok((failed, late));
    }
    let mut pause = |running: &RunningNetwork, wait| lifecycle.pause(running, wait);
    watch(running, &mut pause, || {
        // Prepare one command at a time: a scenario may have any number of them.
        let skipped = controller.scenario_ahead();
        let ahead = AHEAD.saturating_add(skipped);
        let until = controller.elapsed().saturating_add(ahead);
        if let Some(mut command) = scenario.next_due(until) {
            let at = command.at.unwrap_or(Nanos::ZERO);
            controller.scenario_given(at);
            let at = at.saturating_sub(skipped);
            command.at = command.at.map(|_| at);
            if let Err(problem) = controller.schedule(&command) {
                failed.get_or_insert(format!("scenario at {at}: {problem}"));
            }
            // Check again, because preparing the command may have taken too long.
            late.note(at, controller.elapsed());
            return true;
        }
        controller.scenario_given(until);
        controller.tidy();
        if let Some(live) = &mut live {
            live.refresh(|| running.snapshot());
        }
        warn_of_lost_ports(running, &mut reported, globals);
        false
    })?;
    if let Some(mut live) = live {
        live.clear();
    }
    warn_of_lost_ports(running, &mut reported, globals);
    Ok((failed, late))
}

/// Prints the lost ports, except for the first `reported` ones.
fn warn_of_lost_ports(running: &RunningNetwork, reported: &mut usize, globals: &Globals) {
    let lost = running.handle().map(NetworkHandle::lost_ports);
    let lost = lost.unwrap_or_default();
    for (name, port) in lost.iter().skip(*reported) {
        let error = &port.error;
        let remark = format!("port {name} is gone: {error}; the run continues without it");
        start::warn(std::slice::from_ref(&remark), globals);
    }
    *reported = lost.len();
}

/// Scenario commands that were late because preparing them took too long.
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

    /// Returns a remark for the report if any command was late.
    fn remark(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "the scenario fell behind: {} late, by up to {}",
                words::count_of(self.count, "command"),
                words::micros(self.most.as_micros_f64())
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use clap::Parser;
    use longwire_engine::Bytes;
    use longwire_io::port::mem::pipe;
    use longwire_testbed::support::Folder;

    use super::*;
    use crate::commands::run;
    use crate::{Cli, Command as CliCommand};

    /// A lifecycle that attaches slowly, and ends the run once a client has its response.
    struct SlowAttachment<'a> {
        attached: Option<Instant>,
        is_answered: &'a AtomicBool,
    }

    impl Lifecycle for SlowAttachment<'_> {
        fn begin(&mut self) -> Result<(), Error> {
            // Wait longer than a running server takes to respond.
            std::thread::sleep(Duration::from_millis(300));
            self.attached = Some(Instant::now());
            Ok(())
        }

        fn pause(&mut self, running: &RunningNetwork, pause: Duration) -> Result<bool, Error> {
            running.wait(pause);
            Ok(self.is_answered.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn clients_wait_until_ports_are_attached() {
        let cable = || pipe(Bytes(1 << 20)).expect("memory");
        let dir = Folder::new();
        let socket = dir.file("control.sock");
        let line = format!("longwire --quiet run null null --control {socket}");
        let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        let CliCommand::Run(args) = &cli.command else {
            panic!("not run");
        };
        let stop = Arc::new(AtomicBool::new(false));
        let control = longwire_control::bind(&args.live.control.config()).expect("bound");
        let read = run::topology(args, &cli.globals).expect("a topology");
        let ((_into_a, from_a), (_into_b, from_b)) = (cable(), cable());
        let ports = [("a", from_a), ("b", from_b)].map(|(name, rx)| {
            let tx = AnyTx::Discard(DiscardTx::default());
            let port = Port::with_halves(name, AnyRx::Pipe(Box::new(rx)), tx);
            (name.to_owned(), port)
        });
        let setup = NetworkSetup::new(read, &stop, &args.live);
        let is_answered = AtomicBool::new(false);
        let mut attachment = SlowAttachment {
            attached: None,
            is_answered: &is_answered,
        };
        let answered = std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut stream = UnixStream::connect(&socket).expect("connected");
                let request = b"GET /v1/report HTTP/1.1\r\nhost: localhost\r\n\r\n";
                stream.write_all(request).expect("sent");
                let read = stream.read(&mut [0]);
                let at = Instant::now();
                is_answered.store(true, Ordering::SeqCst);
                assert_eq!(read.expect("a response"), 1);
                at
            });
            carry(setup, ports.into(), control, &cli.globals, &mut attachment).expect("a report");
            client.join().expect("a client")
        });
        assert!(attachment.attached.is_some_and(|at| at < answered));
    }
}
