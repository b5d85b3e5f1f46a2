//! `longwire exec` with a link that changes: a topology file, a scenario, or the control API.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_engine::LinkSpec;
use longwire_io::port::registry::Port;
use longwire_io::rights::Capability;
use longwire_testbed::{Environment, EnvironmentConfig, HOSTS_WITH_ROUTERS, HostConfig, Networks};

use super::exec::{environment_for, environment_needs, prepare};
use super::exec_args::ExecArgs;
use super::exec_commands::{CommandEnd, Commands, NodeCommand};
use super::exec_hosts::Hosts;
use super::run_network::{self, NetworkSetup};
use super::run_pair;
use crate::report::finish::ReportStream;
use crate::report::start::{self, Announcement};
use crate::{Error, Globals, rights};
use longwire_topology::Topology;

/// Runs a command behind the network of a file, or behind one link that can
/// be changed.
///
/// # Errors
/// If the file is refused, the networks cannot be made, the link not be
/// started, or the command not be run.
pub(super) fn run(
    file: Option<&Path>,
    command: &[OsString],
    args: &ExecArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let (foundation, read) = prepare(args, || read(file, args, globals))?;
    let (mut topology, mut announcement, hosts, configs, nodes) = read;
    let config = EnvironmentConfig {
        hosts: configs,
        ..environment_for(args, mtus_of(&topology))
    };
    let mut environment = Environment::on(foundation, &config)?;
    let control = longwire_control::bind(&args.control.config())?;
    environment.set_control(control.address()?);
    place_in(environment.networks(), &mut topology, &hosts, args);
    let notes = environment.notes().map(str::to_owned);
    let notes = print_notes(notes.chain(hosts.note(&topology)), globals)?;
    announcement.warnings.extend(notes);
    let mut commands = Commands::new(&mut environment, command, args, globals).with_nodes(&nodes);
    let is_scheduled = topology.is_scheduled();
    if is_scheduled {
        commands.start_peers()?;
    }
    // Preparing a large network takes long, and the command does not handle signals yet.
    let stop = Arc::new(AtomicBool::new(false));
    let mut watch = Some(commands.environment().children().watch_for_stop(&stop)?);
    let ports = open_ports(commands.environment(), &hosts, &topology, &args.port)?;
    let setup = NetworkSetup {
        hosts: None,
        seed: run_network::seed(&topology, args.seed.seed)?,
        topology,
        announcement,
        stop: &stop,
        running: &args.running,
        record: &args.record,
        report: &args.report,
        gives_up: false,
    };
    let (mut started, mut ended) = (false, None);
    let carried = run_network::carry(setup, ports, control, globals, &mut |_, pause| {
        if !started {
            watch = None;
            if stop.load(Ordering::SeqCst) {
                return Err(Error::Failed(INTERRUPTED.to_owned()));
            }
            if !is_scheduled {
                commands.start_peers()?;
            }
            commands.start()?;
            give_up_rights(args);
            started = true;
        }
        ended = commands.wait(pause);
        Ok(ended.is_some())
    });
    let notes = commands.finish();
    // Before the report: a reader may take it as the sign that all has been removed.
    environment.close();
    let mut report = carried?;
    report.run.notes.extend(notes.printed);
    report.run.add_closing_notes(notes.closing);
    let code = run_network::finish(&report, &args.report, globals, ReportStream::Stderr);
    Ok(CommandEnd::exit_code(ended, code?))
}

const INTERRUPTED: &str = "interrupted before the command started";

/// Prints the notes of the start, and returns them for the report.
fn print_notes(
    notes: impl Iterator<Item = String>,
    globals: &Globals,
) -> Result<Vec<String>, Error> {
    let notes: Vec<String> = notes.collect();
    start::notes(&notes, globals)?;
    Ok(notes)
}

fn give_up_rights(args: &ExecArgs) {
    // The scenario may name files of other users.
    let mut needs = environment_needs(args);
    needs.push(Capability::DacOverride);
    rights::give_up(&args.report, &needs);
}

/// Gives the switch the addresses of the hosts, and the routers of links addresses in the
/// network of the hosts, unless these have others or leave none.
fn place_in(networks: &Networks, topology: &mut Topology, hosts: &Hosts, args: &ExecArgs) {
    hosts.teach(topology, networks);
    let plan = networks.plan();
    if !args.hosts.address.is_empty() || topology.ports.len() > HOSTS_WITH_ROUTERS {
        return;
    }
    for (number, link) in topology.links.iter_mut().enumerate() {
        for spec in [Some(&mut link.up), link.down.as_mut()]
            .into_iter()
            .flatten()
        {
            let model = spec
                .router
                .as_ref()
                .and_then(|router| router.models().first());
            if let Some(router) = model.map(|model| *model.prototype()) {
                let router = plan.address_router(router, number);
                *spec = Arc::new(LinkSpec::clone(spec).router(router));
            }
        }
    }
}

/// Returns the MTUs that links have.
fn mtus_of(topology: &Topology) -> impl Iterator<Item = u32> {
    let links = topology.links.iter();
    let directions = links.flat_map(|link| [Some(&link.up), link.down.as_ref()]);
    directions.flatten().filter_map(|spec| spec.mtu_bytes())
}

/// Opens the ports of all hosts, in the order of the topology.
fn open_ports(
    environment: &Environment,
    hosts: &Hosts,
    topology: &Topology,
    kind: &str,
) -> Result<Vec<(String, Port)>, Error> {
    let opened = environment.networks().open_all_ports(kind)?;
    let mut ports: Vec<(usize, Port)> = hosts.ports().iter().copied().zip(opened).collect();
    ports.sort_by_key(|(index, _)| *index);
    let named = |(index, port): (usize, Port)| (topology.ports[index].name.clone(), port);
    Ok(ports.into_iter().map(named).collect())
}

/// The network, its hosts, and their configurations and commands.
type NetworkOfHosts = (
    Topology,
    Announcement,
    Hosts,
    Vec<HostConfig>,
    Vec<NodeCommand>,
);

/// Reads the network and the options of its hosts.
fn read(file: Option<&Path>, args: &ExecArgs, globals: &Globals) -> Result<NetworkOfHosts, Error> {
    let (topology, announcement) = topology(file, args, globals)?;
    let hosts = Hosts::new(&topology)?;
    let configs = hosts.configs(&args.hosts, &topology)?;
    let nodes = hosts.commands(args)?;
    Ok((topology, announcement, hosts, configs, nodes))
}

/// Reads the file, or makes a topology of the one link.
fn topology(
    file: Option<&Path>,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<(Topology, Announcement), Error> {
    if let Some(file) = file {
        run_network::refuse_options_of_one_link(&args.link)?;
        return run_network::read(file, args.scenario.as_deref(), globals);
    }
    // The names of the ports stand for devices that are opened later.
    let ports = [("near", "null"), ("far", "null")];
    let topology = run_pair::between(ports, (&args.link, args.carrier), args.scenario.as_deref())?;
    let announcement = run_pair::announce(&args.link, &topology, globals)?;
    Ok((topology, announcement))
}
