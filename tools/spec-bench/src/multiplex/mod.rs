//! `multiplex`: the number of concurrent links that keep their rate.
//!
//! A link keeps its rate if its throughput is within 1 % of the rate (2 % through veth pairs) over
//! a window of several seconds. Every link has a sender that never lets it idle: TCP-like senders
//! in memory ([`flows`]), and senders at 105 % of the link's rate through veth pairs ([`veth`]).
//!
//! LinkEM's results (Joglekar 2004): 1,320 links of 128 kbit/s within 2 %, and 500 with dummynet on
//! a PC of its time. We do not know the traffic on those links.

mod flows;
mod memory;
mod share;
mod veth;

use std::time::Duration;

use clap::Args;
use longwire::Error;
use longwire_engine::models::framing::Framing;
use longwire_engine::{BitRate, Nanos};
use longwire_runtime::{Placement, WaitMode};
use memory::MultiplexLoad;
use serde::Serialize;
use share::{Share, Window, judge};

use crate::program::{Measurement, lost_at};

/// Bytes that the emulated wire adds to a frame.
const FRAMING: Framing = Framing::ETHERNET;

/// Capacity of a link's queue, in frames.
const QUEUE: u64 = 20;

/// Default rates, in memory and through veth pairs.
const RATES: [u64; 4] = [128_000, 512_000, 1_000_000, 10_000_000];
const RATES_VETH: [u64; 1] = [64_000];

/// Numbers of links, tried in order until one is too large. Numbers whose total rate is below
/// [`LEAST`] bit/s are skipped.
const SERIES: [u32; 13] = [
    250, 500, 1_000, 1_320, 2_500, 4_000, 7_000, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000,
];
const LEAST: u64 = 120_000_000;

/// Maximum relative error of a link that keeps its rate.
const ALLOWED: f64 = 0.01;
const ALLOWED_VETH: f64 = 0.02;

/// Options of `multiplex`.
#[derive(Clone, Debug, Args)]
pub struct MultiplexArgs {
    /// The links' rates [default: 128kbit,512kbit,1mbit,10mbit; with --veth 64kbit]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    pub rate: Vec<BitRate>,
    /// Link counts [default: increasing until overload]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub links: Vec<u32>,
    /// Frame length in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1514,
        value_parser = clap::value_parser!(u32).range(64..=1514)
    )]
    pub size: u32,
    /// Duration of each row's measurement
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
    /// Threads of the emulator between memory ports. 1: one does everything and waits in the
    /// default mode; 2: one receives, one decides and sends, and both spin
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=2)
    )]
    pub threads: u8,
    /// Through real veth pairs, with a generator and a receiver at the ends
    #[arg(long)]
    pub veth: bool,
}

impl MultiplexArgs {
    fn rates(&self) -> Vec<BitRate> {
        let known: &[u64] = if self.veth { &RATES_VETH } else { &RATES };
        if self.rate.is_empty() {
            known
                .iter()
                .filter_map(|bits| BitRate::from_bits_per_sec(*bits))
                .collect()
        } else {
            self.rate.clone()
        }
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.time.as_nanos())
    }
}

/// A row: a number of links with the same rate.
#[derive(Debug, Serialize)]
pub struct MultiplexRow {
    ports: &'static str,
    rate_bits: u64,
    links: u32,
    /// Throughput of all links, as a percentage of the sum of their rates.
    carried_percent: f64,
    /// Error of the worst link, and 99th percentile of all errors.
    worst_percent: f64,
    p99_percent: f64,
    /// Number of links with an error above the limit, and the limit.
    outside: u32,
    allowed_percent: f64,
    /// Frames sent by the emulator, in thousands per second.
    kpps: f64,
    /// Lateness of all frames since the start.
    lateness_p50_us: f64,
    lateness_p99_us: f64,
    lateness_max_us: f64,
    /// Frames lost by the emulator or the kernel, at any port.
    artifacts: u64,
    /// CPU time of the memory ports' senders and receivers, in percent of a core.
    own_percent: f64,
    /// CPU time of the emulator's threads since the start, in percent of a core.
    cpu_percent: f64,
}

impl Measurement for MultiplexArgs {
    type Found = Vec<MultiplexRow>;

    const ABOUT: &'static str = "Rate errors of concurrent saturated links, in real time.\nAt 128 kbit/s, LinkEM kept 1,320 links within 2 % (90 % of ideal), dummynet 500 (34 %);\nfrom 512 kbit/s on, its ports limited LinkEM. CPU: percent of a core; own: senders and receivers in memory.";

    fn quick(&self) -> MultiplexArgs {
        MultiplexArgs {
            rate: BitRate::from_bits_per_sec(1_000_000).into_iter().collect(),
            links: vec![20],
            time: Nanos::from_millis(500),
            ..self.clone()
        }
    }

    fn measure(&self, kind: &str) -> Result<Vec<MultiplexRow>, Error> {
        let mut rows = Vec::new();
        for rate in self.rates() {
            let given = !self.links.is_empty();
            let least = |links: &u32| u64::from(*links) * rate.bits_per_sec() >= LEAST;
            let numbers: Vec<u32> = if given {
                self.links.clone()
            } else {
                SERIES.into_iter().filter(least).collect()
            };
            for links in numbers {
                let row = row(self, kind, rate, links)?;
                let too_many = row.outside > 0;
                rows.push(row);
                if too_many && !given {
                    break;
                }
            }
        }
        Ok(rows)
    }
}

fn row(args: &MultiplexArgs, kind: &str, rate: BitRate, links: u32) -> Result<MultiplexRow, Error> {
    // A thread that only receives from memory must spin, because no event wakes it.
    let (placement, wait) = match args.threads {
        1 => (Placement::Together, WaitMode::Adaptive),
        _ => (Placement::PerStage, WaitMode::Spin),
    };
    let load = MultiplexLoad {
        links,
        rate,
        len: args.size,
        time: args.time(),
        wait,
        placement,
    };
    let (outcome, allowed) = if args.veth {
        (veth::run(&load, kind)?, ALLOWED_VETH)
    } else {
        (memory::run(&load)?, ALLOWED)
    };
    let frame_bits = FRAMING.wire_bits(args.size);
    let (window, bits) = (outcome.window, rate.bits_per_sec());
    let found = judge(&outcome.shares, window, bits, frame_bits, allowed);
    let per_second = found.bits / frame_bits as f64;
    let own_percent = if args.veth {
        0.0
    } else {
        memory::own_cost(links, args.size) * per_second / 1e7
    };
    let report = &outcome.report;
    let late = report.ports.last().cloned().unwrap_or_default().lateness_us;
    let ideal = f64::from(links) * bits as f64;
    Ok(MultiplexRow {
        ports: if args.veth { "veth" } else { "memory" },
        rate_bits: bits,
        links,
        carried_percent: found.bits / ideal * 100.0,
        worst_percent: found.worst * 100.0,
        p99_percent: found.p99 * 100.0,
        outside: found.outside,
        allowed_percent: allowed * 100.0,
        kpps: per_second / 1e3,
        lateness_p50_us: late.p50,
        lateness_p99_us: late.p99,
        lateness_max_us: late.max,
        artifacts: lost_at(&report.ports),
        own_percent,
        cpu_percent: report.cpu_s / report.duration_s.max(1e-9) * 100.0,
    })
}
