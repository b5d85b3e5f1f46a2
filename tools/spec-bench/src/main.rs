//! The measurements in SPECIFICATION.md: `cargo spec-bench NAME`.
//!
//! `longwire bench` has the benches for users' machines. Each bench in this program prints a table
//! of the specification, or JSON with `--json`.

mod attach;
mod control;
mod controllable;
mod light;
mod linkem;
mod multiplex;
mod offline;
mod peers;
mod program;
mod replay;
mod replay_speed;
mod send;
mod startup;
mod stations;
mod trains;
mod verdict;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use longwire::Error;
use longwire_engine::Nanos;

use crate::attach::AttachArgs;
use crate::control::ControlArgs;
use crate::controllable::ControllableArgs;
use crate::light::LightArgs;
use crate::linkem::LinkemArgs;
use crate::multiplex::MultiplexArgs;
use crate::offline::OfflineArgs;
use crate::peers::PeersArgs;
use crate::program::Measurement;
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
  cargo spec-bench multiplex --veth --json   for programs
  cargo spec-bench peers --tlem ~/netmap     next to other programs
  cargo spec-bench peers --from peers.json --picture peers.svg
                                             a picture of earlier figures"
)]
struct Cli {
    /// The measurement
    #[command(subcommand)]
    bench: Bench,
    /// Port type of the live benches: packet, xdp or auto
    #[arg(long, global = true, value_name = "KIND", default_value = "packet")]
    port: String,
    /// Run few, short measurements, to test the bench itself
    #[arg(long, global = true)]
    quick: bool,
    /// Machine-readable output: one JSON value on stdout
    #[arg(long, global = true)]
    json: bool,
}

/// The measurement.
#[derive(Debug, Subcommand)]
enum Bench {
    /// Bandwidth, delay, throughput, and loss against its binomial bound, between four stations, for
    /// comparison with LinkEM
    Linkem(LinkemArgs),
    /// Number of links that keep their rate concurrently, in memory or through veth pairs
    Multiplex(MultiplexArgs),
    /// Start-up time with a file of a hundred thousand links
    Startup(StartupArgs),
    /// A network under load with a thousand changes per second
    Control(ControlArgs),
    /// Cost per packet of a link that can be changed during the run
    Controllable(ControllableArgs),
    /// A replay at full speed, to a sink that discards frames
    ReplaySpeed(ReplaySpeedArgs),
    /// Frames per second of `simulate`, from capture to capture
    Offline(OfflineArgs),
    /// Frames per second into a veth pair, against bare sockets
    Send(SendArgs),
    /// Timing errors of replays at a receiver, with and without stress, and CPU time
    Replay(ReplayArgs),
    /// How often short runs fail a requirement: false alarms and missed faults
    Verdict(VerdictArgs),
    /// CPU time of an idle link
    Idle(IdleArgs),
    /// CPU time, memory and round trips of a link with little traffic
    Light(LightArgs),
    /// TCP and small-datagram floods through links with and without options
    Trains(TrainsArgs),
    /// A link attached to an interface in use: RTT, throughput, time to attach, idle cost
    Attach(AttachArgs),
    /// Longwire next to mahimahi, Rattan, tcpreplay and TLEM
    Peers(PeersArgs),
}

/// Arguments of `idle`.
#[derive(Clone, Debug, Args)]
struct IdleArgs {
    /// Measurement duration
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
    fn with<M: Measurement>(cli: &Cli, args: &M) -> Result<(), Error> {
        crate::program::run(args, &cli.port, cli.quick, cli.json)
    }
    match &cli.bench {
        Bench::Linkem(args) => with(cli, args),
        Bench::Multiplex(args) => with(cli, args),
        Bench::Startup(args) => with(cli, args),
        Bench::Control(args) => with(cli, args),
        Bench::Controllable(args) => with(cli, args),
        Bench::ReplaySpeed(args) => with(cli, args),
        Bench::Offline(args) => with(cli, args),
        Bench::Send(args) => with(cli, args),
        Bench::Replay(args) => with(cli, args),
        Bench::Verdict(args) if args.send.is_some() => verdict::send(args),
        Bench::Verdict(args) => with(cli, args),
        Bench::Idle(args) => with(cli, args),
        Bench::Light(args) => with(cli, args),
        Bench::Trains(args) => with(cli, args),
        Bench::Attach(args) => with(cli, args),
        Bench::Peers(args) => with(cli, args),
    }
}

/// Duration of a quick measurement, which only shows that the bench works.
const QUICK: Nanos = Nanos::from_millis(200);
