//! `bench accuracy`: one-way delay error over real veth pairs.

use std::time::Duration;

use longwire_engine::{LinkConfig, Nanos};
use longwire_runtime::{Pauses, RunConfig, RunReport, WaitMode, host};
use longwire_traffic::sockets::{OneWay, one_way, round_trips};
use serde::Serialize;

use super::AccuracyArgs;
use super::testbed::Testbed;
use crate::Error;

/// A row: one delay and frame length; errors are in microseconds.
#[derive(Debug, Serialize)]
pub(super) struct AccuracyRow {
    delay_us: f64,
    size: u32,
    pps: u64,
    mean_us: f64,
    stddev_us: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    /// Drift: median error of the last tenth of samples minus that of the first tenth.
    drift_us: f64,
    samples: usize,
    lost: u64,
    /// Median one-way time without link delay, spinning; subtracted from each sample.
    base_us: f64,
    /// 99th percentile of the emulator's reported lateness.
    lateness_p99_us: f64,
    /// Machine pauses during this row, as measured by a spinning thread.
    pauses: Pauses,
    /// Mean and standard deviation of DEMU's error.
    demu_us: Option<String>,
}

/// DEMU's published table (Aketa, Hirofuchi, Takano 2016): delay, then mean and standard deviation
/// of the error in microseconds at 1500 B and at 46 B.
const DEMU: [(Nanos, [(f64, f64); 2]); 8] = [
    (Nanos::ZERO, [(0.0, 2.5), (0.0, 2.0)]),
    (Nanos::from_micros(1), [(0.5, 2.4), (0.0, 2.2)]),
    (Nanos::from_micros(10), [(0.6, 2.3), (0.8, 2.2)]),
    (Nanos::from_micros(100), [(0.5, 2.3), (1.7, 2.3)]),
    (Nanos::from_millis(1), [(0.3, 2.4), (1.3, 3.4)]),
    (Nanos::from_millis(10), [(0.5, 2.5), (1.3, 3.3)]),
    (Nanos::from_millis(100), [(0.7, 2.6), (1.1, 2.8)]),
    (Nanos::from_millis(1_000), [(9.1, 2.6), (6.9, 2.8)]),
];

/// Test conditions, printed above the table.
pub(super) const ABOUT: &str = "\
Error of the one-way time, in us: received (kernel stamp) - sent - delay - base.
Base: the median of the same path without delay, spinning, in the same run.
DEMU: mean and standard deviation of its error at 1500 B (46 B in the rows of 64 B).";

pub(super) fn measure(
    args: &AccuracyArgs,
    kind: &str,
    wait: WaitMode,
) -> Result<Vec<AccuracyRow>, Error> {
    let mut rows = Vec::new();
    for size in &args.size {
        for pps in &args.pps {
            let (flow, _) = sample(args, kind, WaitMode::Spin, (Nanos::ZERO, *size, *pps))?;
            let base_ns = flow.quantile(0.5);
            for delay in &args.delay {
                let case = (*delay, *size, *pps);
                let (flow, report) = sample(args, kind, wait, case)?;
                rows.push(row(case, base_ns, &flow, &report));
            }
        }
    }
    Ok(rows)
}

/// Measures the one-way times of a flow through a link; also returns the run's report.
fn sample(
    args: &AccuracyArgs,
    kind: &str,
    wait: WaitMode,
    (delay, size, pps): (Nanos, u32, u64),
) -> Result<(OneWay, RunReport), Error> {
    let testbed = Testbed::emulated()?;
    let link = || LinkConfig {
        delay: delay.into(),
        ..LinkConfig::default()
    };
    let config = RunConfig {
        wait,
        ..RunConfig::default()
    };
    let running = testbed.start(kind, link(), link(), config)?;
    let link_delay = Duration::from_nanos(delay.as_nanos());
    // Resolve addresses and warm up caches before measuring.
    let timeout = link_delay * 5 + Duration::from_secs(1);
    round_trips(testbed.path(), 1, Duration::ZERO, timeout)?;
    let core = host::allowed_cores().first().copied();
    let path = testbed.path();
    one_way(path, size, pps, pps.div_ceil(10), link_delay, core)?;
    let count = (args.time.as_secs_f64() * pps as f64) as u64;
    let flow = one_way(path, size, pps, count.max(100), link_delay, core)?;
    Ok((flow, running.stop()))
}

/// Returns the row of a flow; `base_ns` is the median one-way time without link delay.
fn row(
    (delay, size, pps): (Nanos, u32, u64),
    base_ns: i64,
    flow: &OneWay,
    report: &RunReport,
) -> AccuracyRow {
    let zero = base_ns + delay.as_nanos() as i64;
    let link = report.links.first();
    let error_us = |share: f64| (flow.quantile(share) - zero) as f64 / 1e3;
    let (mean, stddev) = flow.mean_stddev();
    AccuracyRow {
        delay_us: delay.as_micros_f64(),
        size,
        pps,
        mean_us: (mean - zero as f64) / 1e3,
        stddev_us: stddev / 1e3,
        p50_us: error_us(0.5),
        p99_us: error_us(0.99),
        p999_us: error_us(0.999),
        max_us: error_us(1.0),
        drift_us: drift_us(flow),
        samples: flow.times_ns.len(),
        lost: flow.lost(),
        base_us: base_ns as f64 / 1e3,
        lateness_p99_us: link.map_or(0.0, |link| link.lateness_us.p99),
        pauses: report.pauses,
        demu_us: demu(delay, size),
    }
}

fn drift_us(flow: &OneWay) -> f64 {
    let tenth = (flow.arrivals.len() / 10).max(1);
    let median = |part: &[(u64, i64)]| {
        let mut times: Vec<i64> = part.iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(0)
    };
    let first = median(&flow.arrivals[..tenth.min(flow.arrivals.len())]);
    (median(&flow.arrivals[flow.arrivals.len().saturating_sub(tenth)..]) - first) as f64 / 1e3
}

fn demu(delay: Nanos, size: u32) -> Option<String> {
    let (_, [large, small]) = DEMU.iter().find(|(of, _)| *of == delay)?;
    let (mean, deviation) = if size > 500 { large } else { small };
    Some(format!("{mean:.1} ± {deviation:.1}"))
}
