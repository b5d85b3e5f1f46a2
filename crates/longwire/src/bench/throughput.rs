//! `bench throughput`: nanoseconds per packet through the whole engine, memory to memory.
//!
//! The link is saturated at 100 Gbit/s: arrivals are stamped at exactly its rate, so the delay line
//! holds the full bandwidth-delay product (250 MB at 20 ms), and the pipeline runs as fast as two
//! cores can. If the result is below a frame's serialisation time, the emulator is faster than the
//! link.

use std::hint::black_box;
use std::time::{Duration, Instant};

use longwire_engine::models::{DELAY, LOSS};
use longwire_engine::{BitRate, Bytes, LinkConfig, Nanos};
use longwire_io::port::mem;
use longwire_runtime::pipeline::{PipelineConfig, PipelineEnd, run_on_one_thread, run_to_end};
use longwire_runtime::{LinkSetup, crossing, host};
use serde::Serialize;

use super::ThroughputArgs;
use super::harness::median_by;
use crate::progress::Progress;
use crate::{Error, Globals};

const RATE: BitRate = match BitRate::from_bits_per_sec(100_000_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};
const LOSS_PROBABILITY: &str = "0.1%";

/// Returns the test conditions, printed above the table.
pub(super) fn about() -> String {
    format!(
        "One direction, memory to memory: rate 100 Gbit/s with queue accounting,\n\
         delay, loss {LOSS_PROBABILITY}. The faster of two threads and one. Medians of the runs."
    )
}

/// Source memory sizes: one fits in a core's cache, the other exceeds every cache.
const IN_CACHE: usize = 512 << 10;
const IN_MEMORY: usize = 256 << 20;

/// Maximum lead of ingress over the emulated backlog, in bytes of arena memory.
const AHEAD: u64 = 1 << 20;

/// A row: one frame length and delay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ThroughputRow {
    size: u32,
    delay_us: f64,
    /// Time with the better placement; see [`median_row`].
    ns_per_packet: f64,
    mpps: f64,
    gbit_per_s: f64,
    /// Time per packet with both stages on one thread, and with one thread per stage.
    one_thread_ns: f64,
    two_threads_ns: Option<f64>,
    /// Copies per frame: 2 (into the arena and out of it) or 0.
    copies: u32,
    /// Size of the source memory in bytes.
    source_bytes: usize,
    /// Time per frame of the same number of bare copies, on both cores concurrently.
    memcpy_ns: f64,
    ratio_to_memcpy: f64,
    /// Time to move a cache line between the cores, measured right after the run: 40 to 60 ns with
    /// a shared cache, about 200 ns otherwise.
    crossing_ns: Option<f64>,
    packets: u64,
    dropped_by_loss: u64,
    /// Frames lost other than by model drops; must be 0.
    lost_otherwise: u64,
    /// Delivered frames with wrong bytes (if copied) or positions (if not copied); must be 0.
    damaged: u64,
    memory_max: u64,
    /// Number of runs; the row is their median.
    runs: u32,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    size: u32,
    delay: Nanos,
    source_bytes: usize,
    lend: bool,
}

/// Returns the rows selected by the arguments.
fn cases(args: &ThroughputArgs) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in &args.size {
        for delay in &args.delay {
            let case = |source_bytes, lend| Case {
                size: *size,
                delay: *delay,
                source_bytes,
                lend,
            };
            cases.extend([case(IN_CACHE, false), case(IN_MEMORY, false)]);
            if *size as usize >= longwire_runtime::network::LEND_FROM {
                cases.push(case(IN_MEMORY, true));
            }
        }
    }
    cases
}

/// Measures rows until the time is over, but at least one. Each row gets an equal share of the
/// remaining time. Prints the number of omitted rows on stderr, and the options that measure them.
pub(super) fn measure(
    args: &ThroughputArgs,
    quick: bool,
    globals: &Globals,
) -> Result<Vec<ThroughputRow>, Error> {
    let cases = cases(args);
    let all = Duration::from_nanos(args.time.as_nanos());
    let started = Instant::now();
    let mut progress = Progress::new(Progress::SHARE, globals);
    let mut rows = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let left = all.saturating_sub(started.elapsed());
        if left.is_zero() && !quick && number > 0 {
            break;
        }
        progress.at(number as u64, Some(cases.len() as u64));
        let share = left / (cases.len() - number) as u32;
        rows.push(median_row(*case, if quick { QUICK } else { share })?);
    }
    progress.clear();
    let (omitted, all) = (cases.len() - rows.len(), cases.len());
    if omitted > 0 {
        eprintln!(
            "omitted {omitted} of {all} rows, which do not fit into {}; select rows with --size \
             and --delay, or raise --time",
            args.time
        );
    }
    Ok(rows)
}

/// Approximate duration of a quick row: long enough to show that the bench works.
const QUICK: Duration = Duration::from_millis(15);

/// Runs per row, if time permits: other programs share the machine.
const RUNS: u32 = 3;

/// Upper bound of the time per packet on any machine; limits the first run of a row.
const SLOW_NS: u64 = 200;

/// Returns the row with the faster placement, and the times of both. One thread for both stages is
/// often faster if the cores are far apart or busy.
///
/// Takes about `time`, but at least two runs that fill the delay line.
fn median_row(case: Case, time: Duration) -> Result<ThroughputRow, Error> {
    let Case {
        size,
        delay,
        source_bytes,
        ..
    } = case;
    let pair = two_cores();
    let one = median_run(case, None, time / 2)?;
    let two = pair.map(|pair| median_run(case, Some(pair), time / 2));
    let two = two.transpose()?;
    let crossing = pair.and_then(|(one, other)| crossing::between(one, other));
    let one_thread_ns = one.0.ns_per_packet;
    let two_threads_ns = two.as_ref().map(|(run, _)| run.ns_per_packet);
    let (run, runs) = two
        .filter(|(run, _)| run.ns_per_packet < one_thread_ns)
        .unwrap_or(one);
    let (end, ns) = (run.end, run.ns_per_packet);
    let area = source_bytes.max(RATE.bytes_in(delay).0 as usize);
    let memcpy_ns = copy_ns_per_frame(size as usize, area);
    let packets = end.report.traffic.packets_in;
    let dropped_by_loss = end.report.drops.of("loss");
    Ok(ThroughputRow {
        size,
        delay_us: delay.as_micros_f64(),
        ns_per_packet: ns,
        mpps: 1e3 / ns,
        gbit_per_s: f64::from(size) * 8.0 / ns,
        one_thread_ns,
        two_threads_ns,
        copies: if case.lend { 0 } else { 2 },
        source_bytes,
        memcpy_ns,
        ratio_to_memcpy: ns / memcpy_ns,
        crossing_ns: crossing.map(|time| time.as_nanos() as f64),
        packets,
        dropped_by_loss,
        lost_otherwise: packets - dropped_by_loss - end.port.frames(),
        damaged: end.port.damaged(),
        memory_max: end.memory_max,
        runs,
    })
}

/// Returns the median of several runs and their number. Takes about `time`, but at least one run
/// that fills the delay line.
fn median_run(
    case: Case,
    cores: Option<(usize, usize)>,
    time: Duration,
) -> Result<(Run, u32), Error> {
    let started = Instant::now();
    let mut runs: Vec<Run> = Vec::new();
    for nth in 0..RUNS {
        let ran = started.elapsed();
        // Assume that the next run takes as long as the longest one; stop if that would exceed
        // `time`.
        if nth > 0 && ran + runs.iter().map(|run| run.took).max().unwrap_or_default() > time {
            break;
        }
        let share = time.saturating_sub(ran) / (RUNS - nth);
        let usual = runs.iter().map(|run| run.ns_a_frame as u64).max();
        let frames = share.as_nanos() as u64 / usual.unwrap_or(SLOW_NS).max(1);
        runs.push(run(case, cores, frames)?);
    }
    let count = runs.len() as u32;
    Ok((median_by(runs, |run| run.ns_per_packet), count))
}

struct Run {
    end: PipelineEnd<mem::Sink>,
    /// Time per packet while both stages were running.
    ns_per_packet: f64,
    /// Duration of the whole run.
    took: Duration,
    ns_a_frame: f64,
}

/// Sends `frames` frames, but at least enough to fill the delay line several times. Uses one thread
/// per stage on `cores`, or one thread for both stages.
fn run(case: Case, cores: Option<(usize, usize)>, frames: u64) -> Result<Run, Error> {
    let started = Instant::now();
    let Case { size, delay, .. } = case;
    let mut link = LinkConfig {
        rate: Some(RATE).into(),
        ..LinkConfig::default()
    };
    link.delay = DELAY.parse(&delay.to_string()).map_err(Error::failed)?;
    link.loss
        .push(LOSS.parse(LOSS_PROBABILITY).map_err(Error::failed)?);
    let backlog = RATE.bytes_in(delay).0;
    // Each frame also needs a descriptor and alignment padding.
    let memory = backlog + backlog / u64::from(size) * 64;
    let frames = frames.max(backlog / u64::from(size) * 3).max(LEAST);
    let mut source = mem::Source::paced(size as usize, case.source_bytes, RATE, frames);
    let sink = if case.lend {
        mem::Sink::in_place(&mut source)
    } else {
        mem::Sink::copying()
    };
    let config = PipelineConfig {
        seed: 1,
        memory_soft: memory + AHEAD,
        budget: Bytes(memory * 2 + (64 << 20)),
        lend: case.lend,
        cores,
    };
    let setup = LinkSetup::new("link.up", link);
    let end = match cores {
        Some(_) => run_to_end(source, sink, setup, config),
        None => run_on_one_thread(source, sink, setup, config, None),
    };
    let end = end.map_err(Error::failed)?;
    let took = started.elapsed();
    Ok(Run {
        ns_per_packet: end.steady.as_nanos() as f64 / end.steady_frames.max(1) as f64,
        took,
        ns_a_frame: took.as_nanos() as f64 / frames as f64,
        end,
    })
}

/// Minimum frames per run.
const LEAST: u64 = 100_000;

/// Returns a core per stage; `None` if fewer than two are available.
fn two_cores() -> Option<(usize, usize)> {
    let cores = host::allowed_cores();
    Some((*cores.first()?, *cores.get(1)?))
}

/// Duration of a copy measurement.
const COPY_TIME: Duration = Duration::from_millis(150);

/// Returns the nanoseconds to copy a frame of `size` bytes between two areas of `area` bytes. A
/// second core copies concurrently, like the pipeline's two stages.
fn copy_ns_per_frame(size: usize, area: usize) -> f64 {
    std::thread::scope(|scope| {
        // Use separate threads, because pinning must not outlast the measurement.
        let cores = host::allowed_cores();
        let copies: Vec<_> = (0..2)
            .map(|nth| cores.get(nth).copied())
            .map(|core| scope.spawn(move || copy_on(core, size, area)))
            .collect();
        let times = copies.into_iter().map(|copy| {
            copy.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        times.sum::<f64>() / 2.0
    })
}

fn copy_on(core: Option<usize>, size: usize, area: usize) -> f64 {
    core.map(host::pin);
    let area = area.max(size);
    let source = vec![1u8; area];
    let mut target = vec![2u8; area];
    let frames = area / size;
    let (start, mut copied) = (Instant::now(), 0u64);
    while start.elapsed() < COPY_TIME {
        for (from, to) in source.chunks_exact(size).zip(target.chunks_exact_mut(size)) {
            to.copy_from_slice(black_box(from));
            black_box(&to[0]);
        }
        copied += frames as u64;
    }
    start.elapsed().as_nanos() as f64 / copied.max(1) as f64
}
