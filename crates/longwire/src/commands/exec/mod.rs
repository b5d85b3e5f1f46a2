//! `longwire exec`: runs a program in private network namespaces joined by an emulated network.

mod args;
mod commands;
mod network;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use args::split_file;
use commands::{CommandEnd, Commands, LOOK};
use longwire_control::Bound;
use longwire_io::rights::Capability;
use longwire_network::NetworkReport;
use longwire_runtime::RunningNetwork;
use longwire_testbed::{
    Device, Environment, EnvironmentConfig, EnvironmentError, Event, Foundation, Side,
};
use longwire_traffic::sockets::{Host, Path};
use network::HostedNetwork;

use super::run_network::{self, NetworkSetup};
use crate::probe::{self, Expectation, ProbeResult};
use crate::report::{ReportStream, StatusLine, start};
use crate::{Error, Globals, rights};

pub use args::ExecArgs;

/// Runs a command or the probe through a network.
///
/// # Errors
/// If the networks cannot be created, the links cannot be started, or the command cannot be run.
pub fn run(args: &ExecArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (file, command) = split_file(&args.command);
    let network = file.and_then(std::path::Path::to_str);
    args.live.check_report(network.into_iter())?;
    if file.is_none() && args.hosts.is_given() {
        return Err(Error::usage("--node and --address need a topology file"));
    }
    if command.is_empty() {
        refuse_what_a_probe_lacks(file.is_some(), args)?;
    }
    let (foundation, read) = prepare(file, args, globals)?;
    run_in(foundation, read, command, args, globals)
}

/// Refuses options that the probe does not support.
fn refuse_what_a_probe_lacks(file: bool, args: &ExecArgs) -> Result<(), Error> {
    let refused = [
        (file, "a topology cannot be probed"),
        (args.live.scenario.is_some(), "--scenario cannot be probed"),
        (args.time.is_some(), "--time cannot limit the probe"),
    ];
    match refused.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::usage(format!(
            "{why}; add a command, such as `-- bash`"
        ))),
        None => Ok(()),
    }
}

/// Runs a command or the probe in networks built on `foundation`.
fn run_in(
    foundation: Foundation,
    mut read: HostedNetwork,
    command: &[OsString],
    args: &ExecArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let mut expectations = command.is_empty().then(|| expectations(args)).transpose()?;
    let (mut environment, control) = environment(foundation, &mut read, args, globals)?;
    let HostedNetwork {
        topology,
        announcement,
        hosts,
        nodes,
        ..
    } = read;
    let mut commands = Commands::new(&mut environment, (command, &nodes), args, globals);
    let is_scheduled = topology.is_scheduled();
    if is_scheduled {
        commands.start_peers()?;
    }
    // Handle signals in this program until the command runs, because preparing a large network is
    // slow.
    let stop = Arc::new(AtomicBool::new(false));
    let mut watch = Some(commands.environment.children().watch_for_stop(&stop)?);
    let ports = network::open_ports(commands.environment, &hosts, &topology, &args.port)?;
    let may_change = control.takes_clients() || !topology.timeline.events.is_empty();
    let needs = needs_of(args, may_change);
    let setup = NetworkSetup::new((topology, announcement), &stop, &args.live);
    let (mut started, mut ended, mut probed) = (false, None, None);
    let mut lifecycle = |_: &RunningNetwork, pause| {
        if !started {
            watch = None;
            if stop.load(Ordering::SeqCst) {
                return Err(Error::failed("interrupted before the command started"));
            }
            if let Some(expectations) = expectations.take() {
                probed = Some(probe_link(commands.environment, expectations, globals)?);
                return Ok(true);
            }
            if !is_scheduled {
                commands.start_peers()?;
            }
            commands.start()?;
            rights::give_up(&args.live.report, &needs);
            started = true;
        }
        ended = commands.wait(pause);
        Ok(ended.is_some())
    };
    let carried = run_network::carry(setup, ports, control, globals, &mut lifecycle);
    let notes = commands.finish();
    // Close before writing the report: readers may take it as proof that all networks are gone.
    environment.close();
    let mut report = carried?;
    report.run.notes.extend(notes.printed);
    report.run.add_closing_notes(notes.closing);
    finish(&report, probed.as_ref(), ended, args, globals)
}

/// Creates the networks, and adds the hosts' addresses to the topology.
fn environment(
    foundation: Foundation,
    read: &mut HostedNetwork,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<(Environment, Bound), Error> {
    // The devices accept packets as large as the links' MTUs.
    let config = EnvironmentConfig {
        device: match args.port.as_str() {
            "tap" => Device::Tap,
            _ => Device::Veth,
        },
        uplink: args.uplink,
        hosts: read.hosts.configs.clone(),
        ..EnvironmentConfig::with_room_for(network::mtus_of(&read.topology))
    };
    let mut environment = Environment::on(foundation, &config)?;
    let control = longwire_control::bind(&args.live.control.config())?;
    environment.set_control(control.address()?);
    let networks = environment.networks();
    network::place_in(networks, &mut read.topology, &read.hosts, args);
    let notes = environment.notes().map(str::to_owned);
    let notes: Vec<String> = notes.chain(read.hosts.note(&read.topology)).collect();
    start::notes(&notes, globals);
    read.announcement.warnings.extend(notes);
    Ok((environment, control))
}

/// Writes the report, and returns the exit code of the probe or of the command.
fn finish(
    report: &NetworkReport,
    probed: Option<&ProbeResult>,
    ended: Option<CommandEnd>,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let finish = |place| run_network::finish(probed, report, &args.live.report, globals, place);
    let Some(found) = probed else {
        return Ok(CommandEnd::exit_code(ended, finish(ReportStream::Stderr)?));
    };
    if globals.talks() {
        probe::print(found);
    }
    finish(ReportStream::Stdout)
}

/// Returns the probe's expectations of the link, for up and down.
fn expectations(args: &ExecArgs) -> Result<[Expectation; 2], Error> {
    let (up, down) = args.live.link.links()?;
    Ok([Expectation::of(&up), Expectation::of(&down)])
}

/// Creates the foundation of the environment, then reads the network, which may load plugins.
/// Errors in arguments take precedence over system errors.
///
/// # Errors
/// If the network is invalid, or the foundation cannot be created.
fn prepare(
    file: Option<&std::path::Path>,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<(Foundation, HostedNetwork), Error> {
    let foundation = Foundation::new(args.uplink);
    let watch = foundation.as_ref().ok().map(Foundation::end_on_signal);
    let watch = watch.transpose()?;
    let read = network::read(file, args, globals)?;
    drop(watch);
    Ok((foundation?, read))
}

/// Returns the capabilities needed to end commands, and to remove and change the network.
fn needs_of(args: &ExecArgs, may_change: bool) -> Vec<Capability> {
    let mut needs = vec![Capability::Kill];
    needs.extend(run_network::rights_of_changes(may_change));
    if args.uplink {
        needs.extend([Capability::SysAdmin, Capability::NetAdmin]);
    }
    needs
}

/// Probes the link until the probe ends or a signal stops it.
fn probe_link(
    environment: &mut Environment,
    expectations: [Expectation; 2],
    globals: &Globals,
) -> Result<ProbeResult, Error> {
    let namespace = |side| environment.networks().network(side).try_clone();
    let near = namespace(Side::Near).map_err(EnvironmentError::from)?;
    let far = namespace(Side::Far).map_err(EnvironmentError::from)?;
    let plan = environment.networks().plan();
    let mut status = StatusLine::new(globals);
    // Probe on a separate thread, so that signals are handled; a signal abandons the probe.
    let probing = std::thread::spawn(move || {
        let host = |side, namespace| Host {
            namespace,
            address: plan.v4_of(side),
        };
        let path = Path {
            from: host(Side::Near, &near),
            to: host(Side::Far, &far),
        };
        let found = probe::probe(path, expectations, |what| status.say(what));
        status.clear();
        found
    });
    while !probing.is_finished() {
        if let Some(Event::StopRequested(signal)) = environment.children().next(LOOK) {
            return Err(Error::failed(format!("the probe was stopped by {signal}")));
        }
    }
    let found = probing.join();
    Ok(found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
}
