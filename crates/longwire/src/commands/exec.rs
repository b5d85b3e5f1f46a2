//! `longwire exec`: a program behind a link, in private networks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use longwire_engine::{LinkConfig, Nanos};
use longwire_io::RxPort;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry::{self, Port};
use longwire_io::rights::Capability;
use longwire_runtime::RunReport;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::stage::BURST;
use serde::Serialize;

use super::exec_commands::{CommandNotes, Commands, Ended, LOOK, PeerArgs};
use super::exec_network;
use super::exec_words::split_file;
use super::run::setup;
use crate::cli::{
    DUPLEX_HELP, DuplexArgs, LINK_HELP, RecordArgs, ReportArgs, RunningArgs, SeedArgs,
};
use crate::control::ControlArgs;
use crate::exec::{self, Device, Environment, EnvironmentConfig, Event, Foundation, Side};
use crate::probe::{self, Asked, Findings};
use crate::report::finish::{self, Place};
use crate::report::live::Status;
use crate::report::start;
use crate::traffic::{Host, Path};
use crate::{Error, Globals, rights};

const EXAMPLES: &str = "\
Two networks, near and far, are joined by the link and by nothing else. CMD
runs in near, the command of --peer in far; both find the other by the names
near and far, and in $LONGWIRE_NEAR and $LONGWIRE_FAR. No root is needed
where user namespaces are allowed. Without CMD, the link is probed: round
trips, one-way delay, throughput and loss, next to what was asked for.

With a file that ends in .toml before the --, the link is the network that the
file describes (docs/topology.md). It has two ports: near and far, or the first
is near and the second far. Like --scenario and --control, it needs a CMD. The
link without a file has the name 'link'.

stdout is the command's alone. The report goes to stderr, also with --json, and
to a file with --report FILE. Lines of the peer go to stderr after 'peer: ', or
to a file with --peer-output FILE. The exit code is that of CMD.

Examples:
  longwire exec --delay 20ms --rate 10mbit
  longwire exec --delay 20ms -- ping -c 3 far
  longwire exec --rate 100mbit --loss 0.1% --peer 'iperf3 -s' -- iperf3 -c far
  longwire exec --peer 'iperf3 -s' -- iperf3 -J -c far | jq .end.sum_received
  longwire exec --up-rate 2mbit --down-rate 20mbit -- bash
  longwire exec --delay 20ms --control ./link.sock -- bash     in it: longwire ctl
  longwire exec network.toml --scenario rush-hour.toml --time 1min -- ./client
  sudo longwire exec --delay 50ms --uplink -- curl https://example.org";

/// The arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
#[command(override_usage = "longwire exec [OPTIONS] [FILE.toml] [--] [CMD]...")]
pub struct ExecArgs {
    /// The command to run in near, with its arguments; without it, the link
    /// is probed
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// The peer's command.
    #[command(flatten)]
    pub peer: PeerArgs,

    /// As root: connect far to this host's network, to reach outside servers
    /// through the link
    #[arg(long, help_heading = "Commands")]
    pub uplink: bool,

    /// Stop the command after this time, and end the run with its report
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Running",
        allow_hyphen_values = true
    )]
    pub time: Option<Nanos>,

    /// Changes of the link while it runs: a TOML file of `[[at]]` tables
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub scenario: Option<PathBuf>,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// The kind of port that the emulator opens its devices with
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Running"
    )]
    #[arg(value_parser = ["auto", "packet", "xdp", "tap"])]
    pub port: String,

    /// How it runs.
    #[command(flatten)]
    pub running: RunningArgs,

    /// What it records.
    #[command(flatten)]
    pub record: RecordArgs,

    /// Its control API.
    #[command(flatten)]
    pub control: ControlArgs,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Runs a command or the probe behind a link.
///
/// # Errors
/// If the networks cannot be made, the link not be started, or the command
/// not be run.
pub fn run(args: &ExecArgs, globals: &Globals) -> Result<ExitCode, Error> {
    finish::check_file(args.report.report.as_deref())?;
    let (file, command) = split_file(&args.command);
    let of_network = [
        (file.is_some(), "a topology file"),
        (args.scenario.is_some(), "--scenario"),
        (args.control.is_given(), "--control"),
    ];
    let of_network = of_network.iter().find(|(given, _)| *given);
    let of_command = of_network.map(|(_, name)| *name);
    let of_command = of_command.or(args.time.map(|_| "--time"));
    if let Some(name) = of_command.filter(|_| command.is_empty()) {
        return Err(Error::Usage(format!(
            "{name} is for a run with a command, and there is none: add one, as in `-- bash`"
        )));
    }
    if of_network.is_some() {
        return exec_network::run(file, command, args, globals);
    }
    run_link(command, args, globals)
}

/// Runs a command or the probe behind one link that does not change.
fn run_link(command: &[OsString], args: &ExecArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (foundation, (up, down)) = prepare(args, || args.link.links())?;
    let asked = Asked::new(&up, &down);
    let mut environment = Environment::on(foundation, &environment_for(args, [&up, &down]))?;
    let (near, far) = open_ports(&environment, &args.port)?;
    let links = [setup("up", up), setup("down", down)];
    let warnings = start::announce(&links, globals)?;
    let [up, down] = links;
    let config = args.running.config(args.seed.seed, &args.link.faults);
    let recorder = args.record.recorder(&["up", "down"])?;
    let running = longwire_runtime::start_recorded(near, far, up, Some(down), config, recorder)?;
    let remarks: Vec<String> = environment.notes().map(str::to_owned).collect();
    start::notes(running.notes().iter().chain(&remarks), globals)?;

    let mut notes = CommandNotes::default();
    let outcome = if command.is_empty() {
        Outcome::Probed(Box::new(probe_link(&mut environment, asked, globals)?))
    } else {
        let mut commands = Commands::new(&mut environment, command, args, globals);
        commands.start()?;
        rights::give_up(&args.report, &environment_needs(args));
        let ended = loop {
            if let Some(ended) = commands.wait(LOOK) {
                break Some(ended);
            }
            if running.ended() {
                break None;
            }
        };
        notes = commands.finish();
        Outcome::Ended(ended)
    };
    let mut report = running.stop();
    // Before the report: a reader may take it as the sign that all is gone.
    environment.close();
    let printed = remarks.into_iter().chain(warnings).chain(notes.printed);
    report.notes.extend(printed);
    report.add_closing_notes(notes.closing);
    show(outcome, &report, args, globals)
}

/// The use of the link, and its end.
enum Outcome {
    Probed(Box<Findings>),
    /// `None` if the link ended before the command did.
    Ended(Option<Ended>),
}

/// Lays the foundation of the environment, then calls `read`, which may load
/// plugins. What is wrong with the arguments comes before what is wrong with the
/// system.
///
/// # Errors
/// Those of `read`, and if the foundation cannot be laid.
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

/// Returns an environment whose devices have room for the longest frame that
/// any of the links lets pass; a smaller MTU of a link is met on the way, as
/// in the world.
pub(super) fn environment_for<'a>(
    args: &ExecArgs,
    links: impl IntoIterator<Item = &'a LinkConfig>,
) -> EnvironmentConfig {
    let usual = EnvironmentConfig::default();
    let mtus = links.into_iter().filter_map(|link| link.mtu.bytes());
    EnvironmentConfig {
        device: match args.port.as_str() {
            "tap" => Device::Tap,
            _ => Device::Veth,
        },
        mtu: mtus.fold(usual.mtu, u32::max),
        uplink: args.uplink,
        ..usual
    }
}

/// Opens the ports of near and far. Frames that they receive from now on are
/// those of the commands.
pub(super) fn open_ports(environment: &Environment, kind: &str) -> Result<(Port, Port), Error> {
    let options = OpenOptions::default();
    let open = |side| {
        let place = environment.port(side);
        let name = format!("{kind}:{}", place.device);
        let opened = place.namespace.run(|| registry::open(&name, &options));
        Ok::<Port, Error>(opened.map_err(exec::ExecError::from)??)
    };
    let (mut near, mut far) = (open(Side::Near)?, open(Side::Far)?);
    environment.settle()?;
    for port in [&mut near, &mut far] {
        while port.rx.receive(monotonic_now(), BURST, &mut |_| {})?.frames > 0 {}
    }
    Ok((near, far))
}

/// Capabilities that ending the commands and removing the networks takes.
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
    asked: Asked,
    globals: &Globals,
) -> Result<Findings, Error> {
    let namespaces = [Side::Near, Side::Far].map(|side| environment.network(side).try_clone());
    let [near, far] = namespaces;
    let (near, far) = (
        near.map_err(exec::ExecError::from)?,
        far.map_err(exec::ExecError::from)?,
    );
    let plan = environment.plan();
    let mut status = Status::new(globals);
    // In a thread, so that signals are handled meanwhile. It is left behind
    // if the user will not wait for it.
    let probing = std::thread::spawn(move || {
        let host = |side, namespace| Host {
            namespace,
            address: plan.v4_of(side),
        };
        let path = Path {
            from: host(Side::Near, &near),
            to: host(Side::Far, &far),
        };
        let found = probe::probe(path, &asked, |what| status.say(what));
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
    probe: &'a Findings,
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
                return finish::finish_as(&all, report, &args.report, globals, Place::Stdout);
            }
            probe::print(&found);
            finish::finish(report, &args.report, globals, Place::Stdout)
        }
        Outcome::Ended(ended) => {
            let code = finish::finish(report, &args.report, globals, Place::Stderr)?;
            Ok(Ended::exit_code(ended, code))
        }
    }
}
