//! `longwire bench`: Longwire measured on this machine.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use longwire_engine::{BitRate, Nanos};

use crate::{Error, Globals};

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
    /// What an idle link costs
    Idle(TimeArgs),
    /// Real programs through a live link: throughput, loss, round trips
    Live(TimeArgs),
}

/// What `bench throughput` takes.
#[derive(Debug, Args)]
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
    /// How long each row is measured
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub time: Nanos,
}

/// What `bench accuracy` takes.
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
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
pub fn run(_args: &BenchArgs, _globals: &Globals) -> Result<ExitCode, Error> {
    Err(Error::Failed(
        "this bench is not part of this build".to_owned(),
    ))
}
