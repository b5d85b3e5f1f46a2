//! RTTs of several frame lengths over links with several delays.
//!
//! One datagram at a time makes a round trip on each link, as with ping; links with different
//! delays are measured concurrently. The base is the median RTT of the same frame length over a
//! link without delay in the same network. Errors are RTT errors, twice the one-way errors.

use std::time::Duration;

use longwire_engine::Nanos;
use serde::Serialize;

use super::Lanes;
use crate::program::joined;
use crate::stations::{Lane, Stations};
use longwire::Error;
use longwire_traffic::sockets::{Probes, RoundTrips, TrafficError, probe_trips};

/// A row: one delay and one frame length.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DelayRow {
    delay_ms: f64,
    size: u32,
    trips: usize,
    lost: u64,
    base_ms: f64,
    /// Median RTT.
    measured_ms: f64,
    /// Measured − base − twice the delay, for the median, the mean and the 99th percentile.
    error_ms: f64,
    mean_error_ms: f64,
    p99_error_ms: f64,
    /// Measured − twice the delay; includes the path itself.
    whole_error_ms: f64,
    /// Error of the median as a percentage of twice the delay.
    error_percent: f64,
    /// Largest error in the thesis at this delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    linkem_percent: Option<f64>,
}

/// LinkEM's largest errors, by one-way delay in milliseconds.
const LINKEM: [(u64, f64); 3] = [(5, 0.21), (30, 0.105), (101, 0.04)];

/// Maximum round trips per row: the number in the thesis.
const TRIPS_MAX: u32 = 10_000;

/// Time limit for a response, beyond the link's delay.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn measure(
    stations: &Stations,
    lanes: &Lanes,
    sizes: &[u32],
    time: Duration,
) -> Result<Vec<DelayRow>, Error> {
    let mut rows = Vec::new();
    for size in sizes {
        let base = trips(stations, lanes.base, Nanos::ZERO, *size, time / 4)?;
        let found = std::thread::scope(|scope| {
            let spawned = lanes.delays.iter().map(|(delay, lane)| {
                let trips = move || trips(stations, *lane, *delay, *size, time);
                (*delay, scope.spawn(trips))
            });
            let threads: Vec<_> = spawned.collect();
            let rows = threads.into_iter().map(|(delay, thread)| {
                Ok::<_, TrafficError>(row(delay, *size, &base, &joined(thread)?))
            });
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        rows.extend(found);
    }
    rows.sort_by(|a, b| a.delay_ms.total_cmp(&b.delay_ms));
    Ok(rows)
}

/// Measures consecutive round trips for about `time`: at least 20, at most [`TRIPS_MAX`].
fn trips(
    stations: &Stations,
    lane: Lane,
    delay: Nanos,
    size: u32,
    time: Duration,
) -> Result<RoundTrips, TrafficError> {
    let there_and_back = Duration::from_nanos(delay.as_nanos() * 2);
    // Leave the machine some idle time even without a delay.
    let interval = there_and_back.max(Duration::from_millis(2));
    let fit = time.as_nanos() / interval.as_nanos();
    let probes = Probes {
        frame_len: size,
        count: (fit as u32).clamp(20, TRIPS_MAX),
        interval,
        timeout: there_and_back + TIMEOUT,
    };
    probe_trips(stations.path(lane), probes)
}

fn row(delay: Nanos, size: u32, base: &RoundTrips, found: &RoundTrips) -> DelayRow {
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let delay_ms = millis(delay.as_nanos());
    let times = &found.times_ns;
    let mean = times.iter().map(|time| millis(*time)).sum::<f64>() / times.len().max(1) as f64;
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or(0);
    let base_ms = millis(base.median_ns().unwrap_or(0));
    let measured_ms = millis(found.median_ns().unwrap_or(0));
    let zero = base_ms + 2.0 * delay_ms;
    let linkem = LINKEM.iter().find(|(ms, _)| *ms as f64 == delay_ms);
    DelayRow {
        delay_ms,
        size,
        trips: times.len(),
        lost: found.lost,
        base_ms,
        measured_ms,
        error_ms: measured_ms - zero,
        mean_error_ms: mean - zero,
        p99_error_ms: millis(p99) - zero,
        whole_error_ms: measured_ms - 2.0 * delay_ms,
        error_percent: (measured_ms - zero) / (2.0 * delay_ms) * 100.0,
        linkem_percent: linkem.map(|(_, percent)| *percent),
    }
}
