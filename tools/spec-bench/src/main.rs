//! The measurements behind SPECIFICATION.md: `cargo spec-bench NAME`.
//!
//! `longwire bench` has the benches that users run on their own machines. Each
//! bench here prints one table of the specification, or JSON with `--json`.

mod attach;
mod control;
mod controllable;
mod exec_run;
mod idle;
mod light;
mod linkem;
mod loss;
mod multiplex;
mod offline;
mod program;
mod replay;
mod replay_speed;
mod send;
mod startup;
mod stations;
mod trains;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use longwire::Error;
use longwire_engine::Nanos;
use serde::Serialize;

use crate::attach::AttachArgs;
use crate::control::ControlArgs;
use crate::controllable::ControllableArgs;
use crate::light::LightArgs;
use crate::linkem::LinkemArgs;
use crate::multiplex::MultiplexArgs;
use crate::offline::OfflineArgs;
use crate::replay::ReplayArgs;
use crate::replay_speed::ReplaySpeedArgs;
use crate::send::SendArgs;
use crate::startup::StartupArgs;
use crate::trains::TrainsArgs;
use crate::verdict::VerdictArgs;

/// Measures what SPECIFICATION.md promises
///
/// Needs the program, `longwire`, next to itself (`cargo build --release` builds
/// it) or in the variable LONGWIRE.
#[derive(Debug, Parser)]
#[command(
    name = "longwire-spec-bench",
    after_help = "\
Examples:
  cargo spec-bench verdict --runs 300        how often CI's requirement fails
  cargo spec-bench multiplex --veth --json   for programs"
)]
struct Cli {
    /// The measurement
    #[command(subcommand)]
    bench: Bench,
    /// Ports of the live benches: packet, xdp or auto
    #[arg(long, global = true, value_name = "KIND", default_value = "packet")]
    port: String,
    /// Few and short measurements: shows that the bench works, not how fast
    #[arg(long, global = true)]
    quick: bool,
    /// Machine-readable output: one JSON value on stdout
    #[arg(long, global = true)]
    json: bool,
}

/// The measurement.
#[derive(Debug, Subcommand)]
enum Bench {
    /// Loss against its binomial bound
    Loss(LossArgs),
    /// Bandwidth, delay, loss and throughput between four stations, as in LinkEM's tables
    Linkem(LinkemArgs),
    /// How many links keep their rate at once, in memory or through veth pairs
    Multiplex(MultiplexArgs),
    /// How long a file of a hundred thousand links takes to run
    Startup(StartupArgs),
    /// A network changed a thousand times a second while it carries traffic
    Control(ControlArgs),
    /// The cost per packet of a link that can be changed while it runs
    Controllable(ControllableArgs),
    /// A replay at full speed, to a sink that discards frames
    ReplaySpeed(ReplaySpeedArgs),
    /// Frames a second of `simulate`, from a capture to a capture
    Offline(OfflineArgs),
    /// Frames a second into a veth pair, against bare sockets
    Send(SendArgs),
    /// Timing errors of replays at a receiver, under stress too, and CPU time
    Replay(ReplayArgs),
    /// How often a requirement fails in short runs: false alarms and faults missed
    Verdict(VerdictArgs),
    /// CPU time of an idle link
    Idle(IdleArgs),
    /// CPU time, memory and round trips of a link with little traffic
    Light(LightArgs),
    /// TCP and floods of small datagrams through links with and without options
    Trains(TrainsArgs),
    /// A link in an interface in use: round trips, throughput, time to attach, idle cost
    Attach(AttachArgs),
}

/// Arguments of `loss`.
#[derive(Clone, Debug, Args)]
struct LossArgs {
    /// Emulated loss
    #[arg(long, value_name = "LOSS")]
    #[arg(value_delimiter = ',', default_value = "1%,3%,7%,10%")]
    loss: Vec<String>,
    /// Packets a row
    #[arg(long, value_name = "N", default_value_t = 120_000)]
    packets: u64,
}

/// Arguments of `idle`.
#[derive(Debug, Args)]
struct IdleArgs {
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s")]
    time: Nanos,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), Error> {
    let (kind, quick) = (cli.port.as_str(), cli.quick);
    match &cli.bench {
        Bench::Loss(args) => {
            let rows = loss::measure(&chosen(args, quick, LossArgs::quick), kind)?;
            show(cli, &rows, |rows| loss::print(rows))
        }
        Bench::Linkem(args) => {
            let found = linkem::measure(&chosen(args, quick, LinkemArgs::quick), kind)?;
            show(cli, &found, linkem::print)
        }
        Bench::Multiplex(args) => {
            let rows = multiplex::measure(&chosen(args, quick, MultiplexArgs::quick), kind)?;
            show(cli, &rows, |rows| multiplex::print(rows))
        }
        Bench::Startup(args) => {
            let rows = startup::measure(&chosen(args, quick, StartupArgs::quick))?;
            show(cli, &rows, |rows| startup::print(rows))
        }
        Bench::Control(args) => {
            let rows = control::measure(&chosen(args, quick, ControlArgs::quick))?;
            show(cli, &rows, |rows| control::print(rows))
        }
        Bench::Controllable(args) => {
            let rows = controllable::measure(&args.quickened(quick))?;
            show(cli, &rows, |rows| controllable::print(rows))
        }
        Bench::ReplaySpeed(args) => {
            let rows = replay_speed::measure(&chosen(args, quick, ReplaySpeedArgs::quick))?;
            show(cli, &rows, |rows| replay_speed::print(rows))
        }
        Bench::Offline(args) => {
            let rows = offline::measure(&chosen(args, quick, OfflineArgs::quick))?;
            show(cli, &rows, |rows| offline::print(rows))
        }
        Bench::Send(args) => {
            let rows = send::measure(&chosen(args, quick, SendArgs::quick))?;
            show(cli, &rows, |rows| send::print(rows))
        }
        Bench::Replay(args) => {
            let found = replay::measure(&chosen(args, quick, ReplayArgs::quick), kind)?;
            show(cli, &found, replay::print)
        }
        Bench::Verdict(args) => {
            let found = verdict::measure(&chosen(args, quick, VerdictArgs::quick))?;
            match args.send {
                Some(_) => Ok(()),
                None => show(cli, &found, verdict::print),
            }
        }
        Bench::Idle(args) => {
            let time = if quick { QUICK } else { args.time };
            let time = Duration::from_nanos(time.as_nanos());
            show(cli, &idle::measure(time, kind)?, idle::print)
        }
        Bench::Light(args) => {
            let rows = light::measure(&chosen(args, quick, LightArgs::quick))?;
            show(cli, &rows, |rows| light::print(rows))
        }
        Bench::Trains(args) => {
            let rows = trains::measure(&chosen(args, quick, TrainsArgs::quick))?;
            show(cli, &rows, |rows| trains::print(rows))
        }
        Bench::Attach(args) => measure_attach(cli, args),
    }
}

fn measure_attach(cli: &Cli, args: &AttachArgs) -> Result<(), Error> {
    let rows = attach::measure(&chosen(args, cli.quick, AttachArgs::quick))?;
    show(cli, &rows, |rows| attach::print(rows))
}

/// Returns the arguments, or those of a quick measurement.
fn chosen<T: Clone>(args: &T, quick: bool, short: fn(&T) -> T) -> T {
    if quick { short(args) } else { args.clone() }
}

/// Prints a table, as JSON or as text.
fn show<T: Serialize>(cli: &Cli, found: &T, print: impl Fn(&T)) -> Result<(), Error> {
    if cli.json {
        let text = serde_json::to_string_pretty(found)
            .map_err(|error| Error::Failed(error.to_string()))?;
        println!("{text}");
    } else {
        print(found);
    }
    Ok(())
}

/// Duration of a quick measurement, which only shows that the bench works.
const QUICK: Nanos = Nanos::from_millis(200);

impl LossArgs {
    fn quick(&self) -> LossArgs {
        LossArgs {
            loss: vec!["10%".to_owned()],
            packets: 2_000,
        }
    }
}
