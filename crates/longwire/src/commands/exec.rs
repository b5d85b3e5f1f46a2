//! `longwire exec`: a program behind a link, in networks of its own.

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use longwire_engine::LinkConfig;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry::{self, Port};
use longwire_runtime::{RunReport, Running};
use serde::Serialize;

use super::run::setup;
use crate::cli::{
    DUPLEX_HELP, DuplexArgs, LINK_HELP, RecordArgs, ReportArgs, RunningArgs, SeedArgs,
};
use crate::error::EXIT_FAILED;
use crate::exec::{
    self, Device, Environment, EnvironmentConfig, Event, PEER_WAIT, Side, exit_code_of,
};
use crate::probe::{self, Asked, Findings};
use crate::report::finish::{self, Place};
use crate::report::live::Status;
use crate::report::start;
use crate::traffic::{Host, Path};
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Two networks, near and far, are joined by the link and by nothing else. CMD
runs in near, the command of --peer in far; both find the other by the names
near and far, and in $LONGWIRE_NEAR and $LONGWIRE_FAR. No root is needed
where user namespaces are allowed. The exit code is that of CMD. Without CMD,
the link is probed: round trips, one-way delay, throughput and loss, next to
what was asked for. The report goes to stderr; with --json it comes on stdout
after the command's own output, and --report FILE keeps the two apart.

Examples:
  longwire exec --delay 20ms --rate 10mbit
  longwire exec --delay 20ms -- ping -c 3 far
  longwire exec --rate 100mbit --loss 0.1% --peer 'iperf3 -s' -- iperf3 -c far
  longwire exec --up-rate 2mbit --down-rate 20mbit -- bash
  sudo longwire exec --delay 50ms --uplink -- curl https://example.org";

/// What `exec` takes.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
pub struct ExecArgs {
    /// The command to run in near, with its arguments; without it, the link
    /// is probed
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// A command for far, run by the shell; CMD waits until it listens
    #[arg(
        long,
        value_name = "CMD",
        requires = "command",
        help_heading = "Commands"
    )]
    pub peer: Option<OsString>,

    /// As root: connect far to this host's network, to reach outside servers
    /// through the link
    #[arg(long, help_heading = "Commands")]
    pub uplink: bool,

    /// The link.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// What the emulator reads and writes its devices with
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
    let (up, down) = args.link.links()?;
    let asked = Asked::new(&up, &down);
    let mut environment = Environment::new(&environment_for(args, &up, &down))?;
    let (near, far) = open_ports(&environment, &args.port)?;
    let links = [setup("up", up), setup("down", down)];
    let warnings = start::announce(&links, globals)?;
    let [up, down] = links;
    let config = args.running.config(args.seed.seed, &args.link.faults);
    let recorder = args.record.recorder(&["up", "down"])?;
    let running = longwire_runtime::start_recorded(near, far, up, Some(down), config, recorder)?;
    let remarks: Vec<String> = environment.notes().map(str::to_owned).collect();
    start::notes(running.notes().iter().chain(&remarks), globals)?;

    let outcome = match args.command.is_empty() {
        true => Outcome::Probed(Box::new(probe_link(&mut environment, asked, globals)?)),
        false => Outcome::Ended(run_commands(&mut environment, &running, args, globals)?),
    };
    let mut report = running.stop();
    // Before the report: a reader may take it as the sign that all is gone.
    environment.close();
    report.notes.extend(remarks.into_iter().chain(warnings));
    show(outcome, &report, args, globals)
}

/// What the link was used for, and how that ended.
enum Outcome {
    Probed(Box<Findings>),
    /// `None` if the link ended before the command did.
    Ended(Option<ExitStatus>),
}

/// The devices have room for the longest frame that either direction lets
/// pass; a smaller MTU of a link is met on the way, as in the world.
fn environment_for(args: &ExecArgs, up: &LinkConfig, down: &LinkConfig) -> EnvironmentConfig {
    let usual = EnvironmentConfig::default();
    let longest = up.mtu.bytes().max(down.mtu.bytes()).unwrap_or(usual.mtu);
    EnvironmentConfig {
        device: match args.port.as_str() {
            "tap" => Device::Tap,
            _ => Device::Veth,
        },
        mtu: longest.max(usual.mtu),
        uplink: args.uplink,
        ..usual
    }
}

fn open_ports(environment: &Environment, kind: &str) -> Result<(Port, Port), Error> {
    let options = OpenOptions::default();
    let open = |side| {
        let place = environment.port(side);
        let name = format!("{kind}:{}", place.device);
        let opened = place.namespace.run(|| registry::open(&name, &options));
        Ok::<Port, Error>(opened.map_err(exec::ExecError::from)??)
    };
    Ok((open(Side::Near)?, open(Side::Far)?))
}

/// How soon the end of a command, or of the link, is seen.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the commands until the one in near ends. `None` if the link ended
/// first.
fn run_commands(
    environment: &mut Environment,
    running: &Running,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<Option<ExitStatus>, Error> {
    if let Some(peer) = &args.peer {
        let listens = environment.spawn_far(peer, PEER_WAIT)?;
        if !listens && globals.talks() {
            eprintln!("nothing listens in far yet; starting the command all the same");
        }
    }
    environment.spawn_near(&args.command)?;
    loop {
        match environment.children().next(LOOK) {
            Some(Event::CommandEnded(status)) => return Ok(Some(status)),
            Some(Event::PeerEnded(status)) if !status.success() && globals.talks() => {
                eprintln!("the peer's command ended: {}", exec::describe(status));
            }
            // Stops are the command's to obey: it was told.
            _ => {}
        }
        if running.ended() {
            environment.children().end_all();
            return Ok(None);
        }
    }
}

/// Probes the link, and stops when told to.
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
    // A thread of its own, so that signals are heard meanwhile. It is left
    // behind if the user will not wait for it.
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

/// The report, with what the probe found.
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
            println!();
            finish::finish(report, &args.report, globals, Place::Stdout)
        }
        Outcome::Ended(status) => {
            let code = finish::finish(report, &args.report, globals, Place::Stderr)?;
            Ok(match status.map_or(EXIT_FAILED, exit_code_of) {
                // A command that did well says nothing of the link.
                0 => code,
                own => ExitCode::from(own),
            })
        }
    }
}
