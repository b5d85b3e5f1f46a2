//! `bench shards`: cost and speedup of sharding.
//!
//! Like `bench links`, sends 64-byte frames of random address pairs through their pairs' links,
//! from memory to memory in virtual time: first without shards, then with each shard count. The
//! output is identical in every row.

use std::hint::black_box;
use std::num::NonZero;
use std::time::Instant;

use clap::Args;
use longwire_engine::{FrameMeta, LinkId, Nanos};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::deciding::{NetworkParts, OutputFrame, Sharding, Simulation, shard_round};
use longwire_units::random::Stream;
use serde::Serialize;

use super::harness::{in_turn, median, median_by};
use super::links::{self, GAP, LEN};
use super::pairs::PairFrame;
use crate::Error;

/// Arguments of `bench shards`.
#[derive(Clone, Debug, Args)]
pub struct ShardsArgs {
    /// Number of links
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub links: u32,
    /// Shard counts
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(default_value = "1,2,4,16")]
    pub shards: Vec<usize>,
    /// Number of threads; at most one per shard is used
    #[arg(long, value_name = "N", default_value = "2")]
    pub threads: NonZero<usize>,
    /// Packets per row
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    pub packets: u64,
}

/// A row: one shard count.
#[derive(Debug, Serialize)]
pub(super) struct ShardsRow {
    /// Number of shards; 0 without sharding.
    shards: usize,
    threads: usize,
    packets: u64,
    ns_per_packet: f64,
    /// Time with one shard divided by this row's time.
    speedup: f64,
    /// Time per packet that the calling thread spends outside parallel phases, in ns: reading,
    /// switching, distribution and output.
    serial_ns: f64,
    /// Time per packet to classify and to process events, in ns; the slowest thread counts.
    classify_ns: f64,
    event_ns: f64,
    /// Number of rounds that ran in parallel.
    rounds: u64,
    /// Digest of the output; identical in every row.
    digest: u64,
    missing: u64,
}

/// Results of the bench.
#[derive(Debug, Serialize)]
pub(super) struct ShardsFound {
    /// Extra cost of a frame that continues in another shard.
    crossing_ns: f64,
    /// Cost of an empty round of two threads.
    barrier_ns: f64,
    rows: Vec<ShardsRow>,
}

/// Test conditions, printed above the result.
pub(super) const ABOUT: &str = "\
64-byte packets in random order, memory to memory, in virtual time; medians of 5.
Crossing: extra cost of a frame that continues in another shard. Barrier: a round of two threads.";

/// Measurements per row; the row reports the median.
const TIMES: usize = 5;

pub(super) fn measure(args: &ShardsArgs) -> Result<ShardsFound, Error> {
    let two = NonZero::<usize>::MIN.saturating_add(1);
    let (rows, crossing_ns) = (rows(args)?, crossing(args)?);
    let barrier = shard_round(two).map_err(Error::failed)?;
    Ok(ShardsFound {
        crossing_ns,
        barrier_ns: barrier.as_nanos() as f64,
        rows,
    })
}

/// Returns the cost of crossing into another shard, in ns. Compares two-link paths within one shard
/// and across shards, on one thread.
fn crossing(args: &ShardsArgs) -> Result<f64, Error> {
    let pairs = args.links / 2;
    let run = |apart: bool| {
        let mut parts = links::parts(pairs)?;
        parts.links.extend(links::parts(pairs)?.links);
        for (link, path) in parts.paths.iter_mut().enumerate() {
            path.push(LinkId(pairs + link as u32));
        }
        let shard_of = |link: u32| (link % 2) as u16 ^ u16::from(apart && link >= pairs);
        let shard_of = (0..2 * pairs).map(shard_of).collect();
        parts.sharding = Sharding::new(shard_of, 2, NonZero::<usize>::MIN);
        let args = ShardsArgs {
            links: pairs,
            ..args.clone()
        };
        Ok::<f64, Error>(simulate(&args, parts, 2)?.ns_per_packet)
    };
    let mut costs = Vec::new();
    for _ in 0..TIMES {
        let (together, apart) = (run(false)?, run(true)?);
        costs.push((apart - together).max(0.0));
    }
    Ok(median(costs))
}

fn rows(args: &ShardsArgs) -> Result<Vec<ShardsRow>, Error> {
    let plans: Vec<Option<usize>> = std::iter::once(None)
        .chain(args.shards.iter().map(|shards| Some(*shards)))
        .collect();
    let measured = in_turn(TIMES, &plans, |_, plan| row(args, *plan))?;
    let median = |rows| median_by(rows, |row: &ShardsRow| row.ns_per_packet);
    let mut rows: Vec<ShardsRow> = measured.into_iter().map(median).collect();
    let one = rows.iter().find(|row| row.shards == 1);
    let one = one.map_or(f64::NAN, |row| row.ns_per_packet);
    for row in &mut rows {
        row.speedup = one / row.ns_per_packet;
    }
    if let Some(other) = rows.iter().find(|row| row.digest != rows[0].digest) {
        return Err(Error::failed(format!(
            "{} shards delivered different frames than a run without shards; please report this",
            other.shards
        )));
    }
    Ok(rows)
}

fn row(args: &ShardsArgs, shards: Option<usize>) -> Result<ShardsRow, Error> {
    let mut parts = links::parts(args.links)?;
    let count = shards.unwrap_or(1).max(1);
    if shards.is_some() {
        let shard_of = (0..args.links).map(|link| (link as usize % count) as u16);
        parts.sharding = Sharding::new(shard_of.collect(), count, args.threads);
    }
    let row = simulate(args, parts, count)?;
    Ok(ShardsRow {
        shards: shards.unwrap_or(0),
        ..row
    })
}

/// Returns the row of a network that carries random frames.
fn simulate(args: &ShardsArgs, parts: NetworkParts, shards: usize) -> Result<ShardsRow, Error> {
    let mut simulation =
        Simulation::new(&["a", "b"], parts, 1, Nanos::ZERO, None).map_err(Error::failed)?;
    // Nothing changes the links, as in `simulate` without a scenario.
    simulation.stays_until(Nanos::MAX);
    let packets = args.packets.max(u64::from(args.links) * 4);
    let (mut arrived, mut digest) = (0u64, 0u64);
    let mut out = |frame: OutputFrame<'_>| {
        arrived += 1;
        let word = u64::from(black_box(frame.bytes)[42]) ^ frame.release.as_nanos();
        digest = digest.rotate_left(1) ^ word;
        Ok::<(), Error>(())
    };
    let mut chance = Stream::of_seed(1);
    let mut frame = PairFrame::new(LEN);
    let mut arrival = Nanos::ZERO;
    let started = Instant::now();
    for _ in 0..packets {
        frame.set(chance.up_to(u64::from(args.links) - 1) as u32, 0);
        let meta = FrameMeta { arrival, len: LEN };
        simulation.frame(PortIndex(0), meta, frame.bytes(), &mut out)?;
        arrival = arrival.saturating_add(GAP);
    }
    simulation.advance(Nanos::MAX, &mut out)?;
    let took = started.elapsed();
    let times = simulation.shard_times();
    let each = |nanos: u128| nanos as f64 / packets as f64;
    let serial = took.saturating_sub(times.classifying + times.advancing);
    Ok(ShardsRow {
        shards,
        threads: args.threads.get().min(shards),
        packets,
        ns_per_packet: each(took.as_nanos()),
        speedup: 1.0,
        serial_ns: each(serial.as_nanos()),
        classify_ns: each(times.classifying.as_nanos()),
        event_ns: each(times.advancing.as_nanos()),
        rounds: times.rounds,
        digest,
        missing: packets - arrived,
    })
}
