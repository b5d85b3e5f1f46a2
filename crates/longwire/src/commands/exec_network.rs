//! `longwire exec` with a link that changes: a topology file with two ends, a
//! scenario, or the control API.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longwire_io::port::Port;
use longwire_io::rights::Capability;
use longwire_testbed::Environment;

use super::exec::{environment_for, environment_needs, prepare};
use super::exec_args::ExecArgs;
use super::exec_commands::{CommandEnd, Commands};
use super::run_network::{self, NetworkSetup};
use super::run_pair;
use crate::report::finish::ReportStream;
use crate::report::start;
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
    let (foundation, (topology, mut remarks, ends)) = prepare(args, || {
        let (topology, remarks) = topology(file, args, globals)?;
        let ends = ends(&topology)?;
        Ok((topology, remarks, ends))
    })?;
    let directions = topology
        .links
        .iter()
        .flat_map(|link| [Some(&link.up), link.down.as_ref()]);
    let mtus = directions.flatten().filter_map(|spec| spec.mtu_bytes());
    let mut environment = Environment::on(foundation, &environment_for(args, mtus))?;
    // Preparing a large network takes long, and no command handles signals yet.
    let stop = Arc::new(AtomicBool::new(false));
    let mut watch = Some(environment.children().watch_for_stop(&stop)?);
    let control = longwire_control::bind(&args.control.config())?;
    environment.set_control(control.address()?);
    let (near, far) = environment.networks().open_ports(&args.port)?;
    let mut ports = [(ends[0], near), (ends[1], far)];
    ports.sort_by_key(|(index, _)| *index);
    let named = |(index, port): (usize, Port)| (topology.ports[index].name.clone(), port);
    let ports = ports.into_iter().map(named).collect();
    let notes = environment.notes().map(str::to_owned);
    let notes: Vec<String> = notes.chain(names_of_ends(&topology, ends)).collect();
    start::notes(&notes, globals)?;
    remarks.extend(notes);
    let setup = NetworkSetup {
        seed: run_network::seed(&topology, args.seed.seed)?,
        topology,
        remarks,
        stop: &stop,
        running: &args.running,
        record: &args.record,
        report: None,
    };

    let mut commands = Commands::new(&mut environment, command, args, globals);
    let (mut started, mut ended) = (false, None);
    let carried = run_network::carry(setup, ports, control, globals, &mut |_, pause| {
        if !started {
            watch = None;
            if stop.load(Ordering::SeqCst) {
                let message = "interrupted before the command started";
                return Err(Error::Failed(message.to_owned()));
            }
            commands.start()?;
            // The scenario may name files of other users.
            let mut needs = environment_needs(args);
            needs.push(Capability::DacOverride);
            rights::give_up(&args.report, &needs);
            started = true;
        }
        ended = commands.wait(pause);
        Ok(ended.is_some())
    });
    let notes = commands.finish();
    // Before the report: a reader may take it as the sign that everything has
    // been removed.
    environment.close();
    let mut report = carried?;
    report.run.notes.extend(notes.printed);
    report.run.notes.extend(notes.closing);
    let code = run_network::finish(&report, &args.report, globals, ReportStream::Stderr)?;
    Ok(CommandEnd::exit_code(ended, code))
}

/// Reads the file, or makes a topology of the one link.
fn topology(
    file: Option<&Path>,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<(Topology, Vec<String>), Error> {
    if let Some(file) = file {
        run_network::refuse_options_of_one_link(&args.link)?;
        return run_network::read(file, args.scenario.as_deref(), globals);
    }
    // The names of the ports stand for devices that are opened later.
    let ports = [("near", "null"), ("far", "null")];
    let topology = run_pair::between(ports, &args.link, args.scenario.as_deref())?;
    let warnings = run_network::warn(&topology, globals)?;
    Ok((topology, warnings))
}

/// Returns which ports of the topology are near and far: those with these
/// names, or the first and the second.
fn ends(topology: &Topology) -> Result<[usize; 2], Error> {
    let names: Vec<&str> = topology.ports.iter().map(|port| &*port.name).collect();
    if names.len() != 2 {
        return Err(Error::Usage(format!(
            "exec has two ends, near and far, and the file has {} port{} ({}): describe a network \
             with two ports, or use `longwire run`",
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            names.join(", ")
        )));
    }
    match names[..] {
        ["far", _] | [_, "near"] => Ok([1, 0]),
        _ => Ok([0, 1]),
    }
}

/// Returns a note that says which port is which end, unless their names do.
fn names_of_ends(topology: &Topology, ends: [usize; 2]) -> Option<String> {
    let [near, far] = ends.map(|index| &topology.ports[index]);
    if (near.name.as_str(), far.name.as_str()) == ("near", "far") {
        return None;
    }
    Some(format!(
        "port {} is near and port {} is far; {} and {} are not opened",
        near.name, far.name, near.opens, far.opens
    ))
}
