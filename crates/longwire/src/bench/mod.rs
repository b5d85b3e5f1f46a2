//! `longwire bench`: measures Longwire on this machine.

mod accuracy;
pub mod harness;
mod links;
mod live;
pub mod pairs;
mod plugin;
pub mod rate;
mod shards;
pub mod testbed;
mod throughput;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use longwire_engine::{BitRate, Nanos};

use self::harness::show;
use crate::cli::Wait;
use crate::{Error, Globals};

pub use links::LinksArgs;
pub use shards::ShardsArgs;

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
                        Examples:
  longwire bench throughput                 ns per packet, memory to memory
  longwire bench accuracy --delay 1ms,100ms one-way error over a veth pair
  longwire bench throughput --json          for programs")]
pub struct BenchArgs {
    /// Benchmark to run
    #[command(subcommand)]
    pub what: Bench,
    /// Port type for accuracy, rate and live: packet, xdp or auto
    #[arg(long, global = true, value_name = "KIND", default_value = "packet")]
    pub port: String,
    /// Wait mode for accuracy
    #[arg(long, global = true, value_name = "MODE", default_value = "spin")]
    pub wait: Wait,
    /// Run only a few short rows, to test the benchmark itself
    #[arg(long, global = true)]
    pub quick: bool,
}

/// A bench.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Time per packet over one direction of a link, memory to memory
    Throughput(ThroughputArgs),
    /// Error of one-way delays over a veth pair
    Accuracy(AccuracyArgs),
    /// TCP and UDP throughput against the configured rate
    Rate(RateArgs),
    /// Cost per packet with 1 to 100,000 links
    Links(LinksArgs),
    /// Cost per packet with links sharded over threads
    Shards(ShardsArgs),
    /// Cost per packet of a plugin's hooks
    Plugin(PluginArgs),
    /// TCP and UDP throughput and round-trip times over a link, compared with a bare veth pair
    Live(TimeArgs),
}

/// Arguments of `bench throughput`.
#[derive(Clone, Debug, Args)]
pub struct ThroughputArgs {
    /// Frame lengths in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    #[arg(default_value = "64,512,1500")]
    pub size: Vec<u32>,
    /// Emulated delays
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    #[arg(default_value = "0ms,20ms")]
    pub delay: Vec<Nanos>,
    /// Total time for all rows; rows that do not fit are omitted
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub time: Nanos,
}

/// Arguments of `bench accuracy`.
#[derive(Clone, Debug, Args)]
pub struct AccuracyArgs {
    /// Emulated delays
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    #[arg(default_value = "0ns,1us,10us,100us,1ms,10ms,100ms,1s")]
    pub delay: Vec<Nanos>,
    /// Frame lengths in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    #[arg(default_value = "64,1500")]
    pub size: Vec<u32>,
    /// Packets per second
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(default_value = "10000,100000")]
    pub pps: Vec<u64>,
    /// Duration of each row
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub time: Nanos,
}

/// Arguments of `bench rate`.
#[derive(Clone, Debug, Args)]
pub struct RateArgs {
    /// Emulated rates
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    #[arg(default_value = "64kbit,1mbit,10mbit,100mbit,1gbit")]
    pub rate: Vec<BitRate>,
    /// Duration of each row
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
}

/// Arguments of `bench plugin`.
#[derive(Clone, Debug, Args)]
pub struct PluginArgs {
    /// Plugin (shared library)
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Plugin parameters
    #[arg(value_name = "KEY=VALUE")]
    pub parameters: Vec<String>,
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    pub time: Nanos,
}

/// Arguments of a bench whose only option is its duration.
#[derive(Debug, Args)]
pub struct TimeArgs {
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
}

/// Runs a bench.
///
/// # Errors
/// Any error of the measurement or its output.
pub fn run(args: &BenchArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (kind, quick, json) = (args.port.as_str(), args.quick, globals.json);
    match &args.what {
        Bench::Throughput(own) => {
            let own = &chosen(own, quick, |own| own.delay = SHORT_DELAYS.to_vec());
            let rows = throughput::measure(own, quick, globals)?;
            show(&throughput::about(), &rows, json)?;
        }
        Bench::Accuracy(own) => {
            let own = &chosen(own, quick, |own| {
                own.delay = SHORT_DELAYS.to_vec();
                (own.size, own.pps, own.time) = (vec![64], vec![1_000], QUICK);
            });
            let rows = accuracy::measure(own, kind, args.wait.into())?;
            show(accuracy::ABOUT, &rows, json)?;
        }
        Bench::Rate(own) => {
            let own = &chosen(own, quick, |own| {
                own.rate = BitRate::from_bits_per_sec(50_000_000).into_iter().collect();
                own.time = Nanos::from_millis(500);
            });
            show(rate::ABOUT, &rate::measure(own, kind)?, json)?;
        }
        Bench::Links(LinksArgs {
            idle: Some(links), ..
        }) => println!("{}", links::idle(*links)?),
        Bench::Links(own) => {
            let own = &chosen(own, quick, |own| {
                (own.links, own.packets) = (vec![1, 1_000], 20_000);
            });
            show(links::ABOUT, &links::measure(own)?, json)?;
        }
        Bench::Shards(own) => {
            let own = &chosen(own, quick, |own| (own.links, own.packets) = (1_000, 50_000));
            show(shards::ABOUT, &shards::measure(own)?, json)?;
        }
        Bench::Plugin(own) => show(plugin::ABOUT, &plugin::measure(own, quick)?, json)?,
        Bench::Live(own) => {
            let time = if quick { QUICK } else { own.time };
            let time = Duration::from_nanos(time.as_nanos());
            show(live::ABOUT, &live::measure(time, kind)?, json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the arguments, reduced by `shorten` if `quick`.
fn chosen<T: Clone>(args: &T, quick: bool, shorten: impl FnOnce(&mut T)) -> T {
    let mut args = args.clone();
    if quick {
        shorten(&mut args);
    }
    args
}

/// Duration of a quick row: long enough to show that the bench works.
const QUICK: Nanos = Nanos::from_millis(200);

/// Delays of quick rows.
const SHORT_DELAYS: [Nanos; 2] = [Nanos::ZERO, Nanos::from_millis(1)];
