//! `bench throughput`: nanoseconds a packet, memory to memory, all of the
//! engine on.
//!
//! The link is one of 100 Gbit/s, saturated: arrivals are stamped at exactly
//! its rate, so the delay line holds what such a link would hold (250 MB at
//! 20 ms), and the pipeline runs as fast as two cores can. A figure below a
//! frame's time on the wire means faster than the link it emulates.

use longwire_engine::models::{DELAY, LOSS};
use longwire_engine::{BitRate, Bytes, LinkConfig, Nanos};
use longwire_io::port::mem;
use longwire_runtime::pipeline::{PipelineConfig, PipelineEnd, run_to_end};
use longwire_runtime::{LinkSetup, host};
use serde::Serialize;

use super::{ThroughputArgs, crossing, memcpy};
use crate::Error;
use crate::table;

const RATE: BitRate = match BitRate::from_bits_per_sec(100_000_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};
const LOSS_PROBABILITY: &str = "0.1%";

/// Source memory that fits a core's cache, and that fits none.
const IN_CACHE: usize = 512 << 10;
const IN_MEMORY: usize = 256 << 20;

/// Beyond the emulated backlog, ingress runs ahead by so much at the most.
const AHEAD: u64 = 1 << 20;

/// One row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    size: u32,
    delay_us: f64,
    ns_per_packet: f64,
    mpps: f64,
    gbit_per_s: f64,
    /// Copies of each frame's bytes: into the arena and out of it, or none.
    copies: u32,
    /// Bytes of the source's memory.
    source_bytes: usize,
    /// Time to copy a frame as often on this machine, both cores at once.
    memcpy_ns: f64,
    ratio_to_memcpy: f64,
    /// Time a cache line takes from one core to the other, just after the run:
    /// 40 to 60 ns where they share a cache, some 200 where not.
    crossing_ns: Option<f64>,
    packets: u64,
    dropped_by_loss: u64,
    /// Must be none.
    lost_otherwise: u64,
    /// Delivered frames whose bytes (copied) or places (left where they are)
    /// were wrong. Must be none.
    damaged: u64,
    memory_max: u64,
}

pub(super) fn measure(args: &ThroughputArgs) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for size in &args.size {
        for delay in &args.delay {
            for source in [IN_CACHE, IN_MEMORY] {
                rows.push(median_row(args, *size, *delay, source, false)?);
            }
            if *size as usize >= longwire_runtime::run::LEND_FROM {
                rows.push(median_row(args, *size, *delay, IN_MEMORY, true)?);
            }
        }
    }
    Ok(rows)
}

/// The median of three runs: the machine is shared.
fn median_row(
    args: &ThroughputArgs,
    size: u32,
    delay: Nanos,
    source_bytes: usize,
    lend: bool,
) -> Result<Row, Error> {
    let runs: Result<Vec<Row>, Error> = (0..3)
        .map(|_| row(args.time, size, delay, source_bytes, lend))
        .collect();
    let mut runs = runs?;
    runs.sort_by(|a, b| a.ns_per_packet.total_cmp(&b.ns_per_packet));
    Ok(runs.swap_remove(1))
}

fn row(
    time: Nanos,
    size: u32,
    delay: Nanos,
    source_bytes: usize,
    lend: bool,
) -> Result<Row, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Failed(error.to_string());
    let mut link = LinkConfig {
        rate: Some(RATE).into(),
        ..LinkConfig::default()
    };
    link.delay = DELAY.parse(&delay.to_string()).map_err(|e| failed(&e))?;
    link.loss
        .push(LOSS.parse(LOSS_PROBABILITY).map_err(|e| failed(&e))?);
    let backlog = RATE.bytes_in(delay).0;
    // A descriptor a frame, and room for the frames' alignment.
    let memory = backlog + backlog / u64::from(size) * 64;
    // Frames enough for the time asked for at 10 ns a packet, and to fill the
    // delay line several times.
    let frames = (time.as_nanos() / 10).max(backlog / u64::from(size) * 4);
    let frames = if size > 256 {
        frames / 4 + backlog / u64::from(size) * 2
    } else {
        frames
    };
    let mut source = mem::Source::paced(size as usize, source_bytes, RATE, frames);
    let sink = if lend {
        mem::Sink::in_place(&mut source)
    } else {
        mem::Sink::copying()
    };
    let config = PipelineConfig {
        seed: 1,
        memory_soft: memory + AHEAD,
        budget: Bytes(memory * 2 + (64 << 20)),
        lend,
        cores: two_cores(),
    };
    let setup = LinkSetup {
        name: "ab".to_owned(),
        config: link,
    };
    let end = run_to_end(source, sink, setup, config).map_err(|e| failed(&e))?;
    Ok(summarise(size, delay, source_bytes, lend, &end))
}

/// A core for each stage, if there are two.
fn two_cores() -> Option<(usize, usize)> {
    let cores = host::allowed_cores();
    Some((*cores.first()?, *cores.get(1)?))
}

fn summarise(
    size: u32,
    delay: Nanos,
    source_bytes: usize,
    lend: bool,
    end: &PipelineEnd<mem::Sink>,
) -> Row {
    let ns = end.steady.as_nanos() as f64 / end.steady_frames.max(1) as f64;
    let copies = if lend { 0 } else { 2 };
    let backlog = RATE.bytes_in(delay).0 as usize;
    let area = source_bytes.max(backlog);
    let memcpy_ns = memcpy::nanos_per_frame(size as usize, area);
    let dropped = end.report.drops.get("loss").copied().unwrap_or(0);
    let delivered = end.port.frames();
    Row {
        size,
        delay_us: delay.as_micros_f64(),
        ns_per_packet: ns,
        mpps: 1e3 / ns,
        gbit_per_s: f64::from(size) * 8.0 / ns,
        copies,
        source_bytes,
        memcpy_ns,
        ratio_to_memcpy: ns / memcpy_ns,
        crossing_ns: crossing::nanos(),
        packets: end.report.packets_in,
        dropped_by_loss: dropped,
        lost_otherwise: end.report.packets_in - dropped - delivered,
        damaged: end.port.damaged(),
        memory_max: end.memory_max,
    }
}

/// TLEM's own program on a machine of this kind, in cache and out of it.
fn tlem(size: u32, source_bytes: usize) -> &'static str {
    match (size, source_bytes) {
        (64, IN_CACHE) => "21-27",
        (64, IN_MEMORY) => "24-31",
        (512, IN_CACHE) => "39-84",
        (512, IN_MEMORY) => "97",
        (1500, IN_CACHE) => "128-160",
        (1500, IN_MEMORY) => "168-198",
        _ => "",
    }
}

pub(super) fn print(rows: &[Row]) {
    println!(
        "One direction on two cores, memory to memory: rate 100 Gbit/s with queue accounting,"
    );
    println!(
        "delay, loss {LOSS_PROBABILITY}. Medians of three. TLEM: its own program on a machine of this kind."
    );
    let mut table = table::Table::new(&[
        "size",
        "delay",
        "source",
        "copies",
        "ns/packet",
        "Mpps",
        "Gbit/s",
        "memcpy ns",
        "ratio",
        "crossing ns",
        "memory MB",
        "lost otherwise",
        "damaged",
        "TLEM ns",
    ]);
    for row in rows {
        table.row(vec![
            row.size.to_string(),
            Nanos::from_nanos((row.delay_us * 1e3) as u64).to_string(),
            if row.source_bytes == IN_CACHE {
                "cache"
            } else {
                "memory"
            }
            .to_owned(),
            row.copies.to_string(),
            format!("{:.1}", row.ns_per_packet),
            format!("{:.1}", row.mpps),
            format!("{:.1}", row.gbit_per_s),
            format!("{:.1}", row.memcpy_ns),
            format!("{:.2}", row.ratio_to_memcpy),
            row.crossing_ns
                .map_or("-".to_owned(), |ns| format!("{ns:.0}")),
            format!("{:.0}", row.memory_max as f64 / 1e6),
            row.lost_otherwise.to_string(),
            row.damaged.to_string(),
            tlem(row.size, row.source_bytes).to_owned(),
        ]);
    }
    table.print();
}
