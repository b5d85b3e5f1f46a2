//! `longwire exec`: runs a program through a link, in private networks.

use std::ffi::OsString;
use std::process::ExitCode;

use longwire_engine::models;
use longwire_io::rights::Capability;
use longwire_runtime::{DIRECTIONS, LinkSetup, NetworkPlan, RunReport, network};
use longwire_testbed::{
    Device, Environment, EnvironmentConfig, EnvironmentError, Event, Foundation, Side,
};
use serde::Serialize;

use super::exec_args::ExecArgs;
use super::exec_commands::{CommandEnd, CommandNotes, Commands, LOOK};
use super::exec_network;
use super::exec_words::split_file;
use super::run_network;
use crate::probe::{self, LinkExpectations, ProbeResult};
use crate::report::finish::{self, Ending, ReportStream};
use crate::report::live::StatusLine;
use crate::report::start::{self, Announcement};
use crate::watch::watch;
use crate::{Error, Globals, rights};
use longwire_traffic::sockets::{Host, Path};

/// Runs a command or the probe through a link.
///
/// # Errors
/// If the networks cannot be created, the link cannot be started, or the
/// command cannot be run.
pub fn run(args: &ExecArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (file, command) = split_file(&args.command);
    let files = [file, args.scenario.as_deref(), args.record.log.as_deref()];
    let files = files
        .into_iter()
        .flatten()
        .filter_map(std::path::Path::to_str);
    finish::check_file(args.report.report.as_deref(), files)?;
    let of_network = [
        (file.is_some(), "a topology file"),
        (args.scenario.is_some(), "--scenario"),
        (args.control.is_given(), "--control or --view"),
    ];
    let of_network = of_network.iter().find(|(given, _)| *given);
    if file.is_none() && args.hosts.is_given() {
        let message = "--node and --address are for the ports of a topology file: name one, as \
                       in `longwire exec network.toml`";
        return Err(Error::Usage(message.to_owned()));
    }
    let of_command = of_network.map(|(_, name)| *name);
    let of_command = of_command.or(args.time.map(|_| "--time"));
    if let Some(name) = of_command.filter(|_| command.is_empty()) {
        return Err(Error::Usage(format!(
            "{name} is for a run with a command, and there is none: add one, as in `-- bash`"
        )));
    }
    if file.is_some() {
        run_network::refuse_carrier(args.carrier)?;
    }
    if of_network.is_some() {
        return exec_network::run(file, command, args, globals);
    }
    run_link(command, args, globals)
}

/// Runs a command or the probe through one link that does not change.
fn run_link(command: &[OsString], args: &ExecArgs, globals: &Globals) -> Result<ExitCode, Error> {
    run_network::refuse_idle_carrier(args.carrier, "--scenario or --control")?;
    args.running.refuse_shards()?;
    let (foundation, (mut up, mut down)) = prepare(args, || args.link.links())?;
    let is_scheduled = [&up, &down].into_iter().any(|link| {
        let parts = link.describe();
        parts.iter().any(|(_, text)| models::is_scheduled(text))
    });
    let expectations = LinkExpectations::new(&up, &down);
    let mtus = [&up, &down].into_iter().filter_map(|link| link.mtu.bytes());
    let mut environment = Environment::on(foundation, &environment_for(args, mtus))?;
    let plan = environment.networks().plan();
    for link in [&mut up, &mut down] {
        link.router = link.router.map(|router| plan.address_router(router, 0));
    }
    let [up_name, down_name] = DIRECTIONS;
    let links = [LinkSetup::new(up_name, up), LinkSetup::new(down_name, down)];
    let announcement = Announcement::of_links(&links, globals)?;
    let [up, down] = links;
    let config = args.running.config(args.seed.seed, &args.link.faults);
    let recorder = args.record.recorder(&DIRECTIONS, &args.report)?;
    let remarks: Vec<String> = environment.notes().map(str::to_owned).collect();
    let mut commands = Commands::new(&mut environment, command, args, globals);
    if is_scheduled {
        commands.start_peers()?;
    }
    // Opened now, ports have no frames from before.
    let (near, far) = commands.environment().networks().open_ports(&args.port)?;
    let plan = NetworkPlan::named_link(["near", "far"], (near, far), up, Some(down));
    let running = network::start(plan, config, recorder)?;
    announcement.print(globals);
    start::notes(running.notes().iter().chain(&remarks), globals)?;

    let mut notes = CommandNotes::default();
    let outcome = if command.is_empty() {
        Outcome::Probed(Box::new(probe_link(
            &mut environment,
            expectations,
            globals,
        )?))
    } else {
        if !is_scheduled {
            commands.start_peers()?;
        }
        commands.start()?;
        rights::give_up(&args.report, &environment_needs(args));
        let mut ended = None;
        watch(
            &running,
            &mut |_, pause| {
                ended = commands.wait(pause);
                Ok(ended.is_some())
            },
            || false,
        )?;
        notes = commands.finish();
        Outcome::Ended(ended)
    };
    let mut report = running.stop();
    // Before the report: a reader may take it as the sign that everything has
    // been removed.
    environment.close();
    let printed = remarks.into_iter().chain(announcement.warnings);
    let printed = printed.chain(notes.printed);
    report.notes.extend(printed);
    report.add_closing_notes(notes.closing);
    show(outcome, &report, args, globals)
}

/// The result of a run.
enum Outcome {
    Probed(Box<ProbeResult>),
    /// `None` if the link ended before the command did.
    Ended(Option<CommandEnd>),
}

/// Creates the foundation of the environment, then calls `read`, which may load
/// plugins. Errors of the arguments take precedence over errors of the system.
///
/// # Errors
/// Those of `read`, and if the foundation cannot be created.
pub(super) fn prepare<T>(
    args: &ExecArgs,
    read: impl FnOnce() -> Result<T, Error>,
) -> Result<(Foundation, T), Error> {
    let foundation = Foundation::new(args.uplink);
    let watch = foundation.as_ref().ok().map(Foundation::end_on_signal);
    let watch = watch.transpose()?;
    let read = read()?;
    drop(watch);
    Ok((foundation?, read))
}

/// Returns an environment whose devices accept packets of these MTUs of links.
pub(super) fn environment_for(
    args: &ExecArgs,
    mtus: impl IntoIterator<Item = u32>,
) -> EnvironmentConfig {
    EnvironmentConfig {
        device: match args.port.as_str() {
            "tap" => Device::Tap,
            _ => Device::Veth,
        },
        uplink: args.uplink,
        ..EnvironmentConfig::with_room_for(mtus)
    }
}

/// Returns the capabilities for ending the commands and removing the networks.
pub(super) fn environment_needs(args: &ExecArgs) -> Vec<Capability> {
    let mut needs = vec![Capability::Kill];
    if args.uplink {
        needs.extend([Capability::SysAdmin, Capability::NetAdmin]);
    }
    needs
}

/// Probes the link, until it is done or a signal stops it.
fn probe_link(
    environment: &mut Environment,
    expectations: LinkExpectations,
    globals: &Globals,
) -> Result<ProbeResult, Error> {
    let namespaces =
        [Side::Near, Side::Far].map(|side| environment.networks().network(side).try_clone());
    let [near, far] = namespaces;
    let (near, far) = (
        near.map_err(EnvironmentError::from)?,
        far.map_err(EnvironmentError::from)?,
    );
    let plan = environment.networks().plan();
    let mut status = StatusLine::new(globals);
    // In a thread, so that signals are handled meanwhile. A signal abandons it.
    let probing = std::thread::spawn(move || {
        let host = |side, namespace| Host {
            namespace,
            address: plan.v4_of(side),
        };
        let path = Path {
            from: host(Side::Near, &near),
            to: host(Side::Far, &far),
        };
        let found = probe::probe(path, &expectations, |what| status.say(what));
        status.clear();
        found
    });
    while !probing.is_finished() {
        if let Some(Event::StopRequested(signal)) = environment.children().next(LOOK) {
            return Err(Error::Failed(format!("the probe was stopped by {signal}")));
        }
    }
    let found = probing
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(found?)
}

/// The report, with the findings of the probe.
#[derive(Serialize)]
struct ProbeJson<'a> {
    probe: &'a ProbeResult,
    #[serde(flatten)]
    report: &'a RunReport,
}

fn show(
    outcome: Outcome,
    report: &RunReport,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    match outcome {
        Outcome::Probed(found) => {
            if globals.json {
                let all = ProbeJson {
                    probe: &found,
                    report,
                };
                return finish::finish_as(
                    &all,
                    &Ending::of(report),
                    &args.report,
                    globals,
                    ReportStream::Stdout,
                );
            }
            if !globals.quiet {
                probe::print(&found);
            }
            finish::finish(report, &args.report, globals, ReportStream::Stdout)
        }
        Outcome::Ended(ended) => {
            let code = finish::finish(report, &args.report, globals, ReportStream::Stderr)?;
            Ok(CommandEnd::exit_code(ended, code))
        }
    }
}
