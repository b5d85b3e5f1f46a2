//! `longwire bench`: Longwire measured on this machine.

mod accuracy;
mod control;
mod crossing;
mod idle;
mod linkem;
mod links;
mod live;
mod loss;
mod memcpy;
mod multiplex;
mod pairs;
mod plugin;
mod rate;
mod replay;
mod replay_speed;
mod send;
mod startup;
mod stations;
mod testbed;
mod throughput;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use longwire_engine::{BitRate, Nanos};
use serde::Serialize;

use crate::cli::Wait;
use crate::{Error, Globals};
pub use control::ControlArgs;
pub use linkem::LinkemArgs;
pub use links::LinksArgs;
pub use multiplex::MultiplexArgs;
pub use replay::ReplayArgs;
pub use replay_speed::ReplaySpeedArgs;
pub use send::SendArgs;
pub use startup::StartupArgs;
pub use verdict::VerdictArgs;

/// What `bench` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longwire bench throughput                 ns a packet, memory to memory
  longwire bench accuracy --delay 1ms,100ms one-way error through a veth pair
  longwire bench throughput --json          for programs")]
pub struct BenchArgs {
    /// What to measure
    #[command(subcommand)]
    pub what: Bench,
    /// Ports of the live benches: packet, xdp or auto
    #[arg(long, global = true, value_name = "KIND", default_value = "packet")]
    pub port: String,
    /// How the emulator waits in `accuracy`
    #[arg(long, global = true, value_name = "MODE", default_value = "spin")]
    pub wait: Wait,
    /// Few and short measurements: shows that the bench works, not how fast
    #[arg(long, global = true)]
    pub quick: bool,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Nanoseconds a packet, memory to memory, all of the engine on
    Throughput(ThroughputArgs),
    /// The error of one-way delays through a real veth pair
    Accuracy(AccuracyArgs),
    /// The rate that TCP and UDP get, against the rate asked for
    Rate(RateArgs),
    /// Loss against its binomial bound
    Loss(LossArgs),
    /// What a packet costs with one link and with a hundred thousand
    Links(LinksArgs),
    /// Bandwidth, delay, loss and throughput between four stations, as in LinkEM's tables
    Linkem(LinkemArgs),
    /// How many links keep their rate at once, in memory or through veth pairs
    Multiplex(MultiplexArgs),
    /// How long a file of a hundred thousand links takes to run
    Startup(StartupArgs),
    /// A network changed a thousand times a second while it carries traffic
    Control(ControlArgs),
    /// A replay as fast as it goes, to nowhere
    ReplaySpeed(ReplaySpeedArgs),
    /// Frames a second into a veth pair, against bare sockets
    Send(SendArgs),
    /// How true replays are at a receiver, under stress too, and what they cost
    Replay(ReplayArgs),
    /// What the hooks of a plugin in C cost a packet
    Plugin(PluginArgs),
    /// How often a requirement fails in short runs: false alarms and faults missed
    Verdict(VerdictArgs),
    /// What an idle link costs
    Idle(TimeArgs),
    /// Real programs through a live link: throughput, loss, round trips
    Live(TimeArgs),
}

/// What `bench throughput` takes.
#[derive(Clone, Debug, Args)]
pub struct ThroughputArgs {
    /// Frame lengths in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,512,1500"
    )]
    pub size: Vec<u32>,
    /// Emulated delays
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ms,20ms"
    )]
    pub delay: Vec<Nanos>,
    /// How long all rows together are measured; those that there is no time
    /// for are left out
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub time: Nanos,
}

/// What `bench accuracy` takes.
#[derive(Clone, Debug, Args)]
pub struct AccuracyArgs {
    /// Emulated delays
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ns,1us,10us,100us,1ms,10ms,100ms,1s"
    )]
    pub delay: Vec<Nanos>,
    /// Frame lengths in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,1500"
    )]
    pub size: Vec<u32>,
    /// Packets a second
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "10000,100000"
    )]
    pub pps: Vec<u64>,
    /// How long each row is measured
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub time: Nanos,
}

/// What `bench rate` takes.
#[derive(Clone, Debug, Args)]
pub struct RateArgs {
    /// Emulated rates
    #[arg(
        long,
        value_name = "RATE",
        value_delimiter = ',',
        default_value = "64kbit,1mbit,10mbit,100mbit,1gbit"
    )]
    pub rate: Vec<BitRate>,
    /// How long each row is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
}

/// What `bench loss` takes.
#[derive(Clone, Debug, Args)]
pub struct LossArgs {
    /// Emulated loss
    #[arg(
        long,
        value_name = "LOSS",
        value_delimiter = ',',
        default_value = "1%,3%,7%,10%"
    )]
    pub loss: Vec<String>,
    /// Packets a row
    #[arg(long, value_name = "N", default_value_t = 120_000)]
    pub packets: u64,
}

/// What `bench plugin` takes.
#[derive(Clone, Debug, Args)]
pub struct PluginArgs {
    /// The plugin, a shared library
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Its parameters
    #[arg(value_name = "KEY=VALUE")]
    pub parameters: Vec<String>,
    /// How long each figure is measured
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    pub time: Nanos,
}

/// What a bench takes that only needs to know how long.
#[derive(Debug, Args)]
pub struct TimeArgs {
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
}

/// Runs a bench.
///
/// # Errors
/// Whatever stopped it.
pub fn run(args: &BenchArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (kind, quick) = (args.port.as_str(), args.quick);
    match &args.what {
        Bench::Throughput(own) => {
            let measured = throughput::measure(&own.quickened(quick), quick, globals)?;
            throughput::say_left_out(&measured, own.time);
            show_rows(globals, measured.rows, throughput::print)
        }
        Bench::Accuracy(own) => {
            let rows = accuracy::measure(&own.quickened(quick), kind, args.wait.into())?;
            show_rows(globals, rows, accuracy::print)
        }
        Bench::Rate(own) => {
            let rows = rate::measure(&own.quickened(quick), kind)?;
            show_rows(globals, rows, rate::print)
        }
        Bench::Loss(own) => {
            let rows = loss::measure(&own.quickened(quick), kind)?;
            show_rows(globals, rows, loss::print)
        }
        Bench::Links(own) => {
            let rows = links::measure(&own.quickened(quick))?;
            show_rows(globals, rows, links::print)
        }
        Bench::Linkem(own) => {
            let found = linkem::measure(&own.quickened(quick), kind)?;
            show(globals, found, linkem::print)
        }
        Bench::Multiplex(own) => {
            let rows = multiplex::measure(&own.quickened(quick), kind)?;
            show_rows(globals, rows, multiplex::print)
        }
        Bench::Startup(own) => {
            let rows = startup::measure(&own.quickened(quick))?;
            show_rows(globals, rows, startup::print)
        }
        Bench::Control(own) => {
            let rows = control::measure(&own.quickened(args.quick))?;
            show(globals, rows, |rows| control::print(rows))
        }
        Bench::ReplaySpeed(own) => {
            let rows = replay_speed::measure(&own.quickened(quick))?;
            show_rows(globals, rows, replay_speed::print)
        }
        Bench::Send(own) => {
            let rows = send::measure(&own.quickened(quick))?;
            show_rows(globals, rows, send::print)
        }
        Bench::Replay(own) => {
            let found = replay::measure(&own.quickened(quick), kind)?;
            show(globals, found, replay::print)
        }
        Bench::Plugin(own) => {
            let rows = plugin::measure(own, quick)?;
            show_rows(globals, rows, plugin::print)
        }
        Bench::Verdict(own) => {
            let found = verdict::measure(&own.quickened(quick))?;
            match own.send {
                Some(_) => Ok(ExitCode::SUCCESS),
                None => show(globals, found, verdict::print),
            }
        }
        Bench::Idle(own) => show(globals, idle::measure(own.time(quick), kind)?, idle::print),
        Bench::Live(own) => show(globals, live::measure(own.time(quick), kind)?, live::print),
    }
}

/// Shows a table.
fn show_rows<T: Serialize>(
    globals: &Globals,
    rows: Vec<T>,
    print: impl Fn(&[T]),
) -> Result<ExitCode, Error> {
    show(globals, rows, |rows| print(rows))
}

/// Shows what was found, as JSON or in words.
fn show<T: Serialize>(globals: &Globals, found: T, print: impl Fn(&T)) -> Result<ExitCode, Error> {
    if globals.json {
        let text = serde_json::to_string_pretty(&found)
            .map_err(|error| Error::Failed(error.to_string()))?;
        println!("{text}");
    } else {
        print(&found);
    }
    Ok(ExitCode::SUCCESS)
}

/// The time a quick row takes: enough to see that it works.
const QUICK: Nanos = Nanos::from_millis(200);

impl ThroughputArgs {
    fn quickened(&self, quick: bool) -> ThroughputArgs {
        if !quick {
            return self.clone();
        }
        ThroughputArgs {
            delay: vec![Nanos::ZERO, Nanos::from_millis(1)],
            ..self.clone()
        }
    }
}

impl AccuracyArgs {
    fn quickened(&self, quick: bool) -> AccuracyArgs {
        if !quick {
            return self.clone();
        }
        AccuracyArgs {
            delay: vec![Nanos::ZERO, Nanos::from_millis(1)],
            size: vec![64],
            pps: vec![1_000],
            time: QUICK,
        }
    }
}

impl RateArgs {
    fn quickened(&self, quick: bool) -> RateArgs {
        if !quick {
            return self.clone();
        }
        RateArgs {
            rate: BitRate::from_bits_per_sec(50_000_000).into_iter().collect(),
            time: Nanos::from_millis(500),
        }
    }
}

impl LossArgs {
    fn quickened(&self, quick: bool) -> LossArgs {
        if !quick {
            return self.clone();
        }
        LossArgs {
            loss: vec!["10%".to_owned()],
            packets: 2_000,
        }
    }
}

impl TimeArgs {
    fn time(&self, quick: bool) -> Duration {
        let time = if quick { QUICK } else { self.time };
        Duration::from_nanos(time.as_nanos())
    }
}
