//! `bench live`: overhead of a live link as seen by programs, relative to a bare veth pair in the
//! same run.

use std::time::Duration;

use longwire_engine::{LinkConfig, Nanos};
use longwire_runtime::RunConfig;
use longwire_traffic::sockets::{Datagrams, UdpFlow, round_trips, tcp_flow, udp_flow};
use serde::Serialize;

use super::harness::median;
use super::testbed::Testbed;
use crate::Error;

/// One-way delays for the round-trip checks, from LinkEM's table.
const DELAYS_MS: [u64; 3] = [5, 30, 101];

/// Round trips per row.
const TRIPS: u32 = 100;

#[derive(Debug, Serialize)]
pub(super) struct LiveResult {
    /// Small-datagram throughput of the link relative to the bare pair.
    small_udp_share: f64,
    /// Median RTT without delay minus that of the bare pair, in milliseconds.
    base_rtt_over_bare_ms: f64,
    /// Frames lost before the link without being counted: sent − arrived at the link − counted as
    /// `ring_full` or `too_long`. The maximum over the runs.
    unseen: i64,
    bare: PathPerformance,
    link: PathPerformance,
    /// RTT error at each delay: measured RTT − RTT without delay − twice the delay.
    rtt_errors: Vec<RttError>,
}

/// Performance of one path between the hosts.
#[derive(Debug, Serialize)]
struct PathPerformance {
    tcp_gbit: f64,
    small_udp_sent_pps: f64,
    small_udp_received_pps: f64,
    rtt_ms: f64,
}

/// RTT error at one delay.
#[derive(Debug, Serialize)]
struct RttError {
    delay_ms: u64,
    error_ms: f64,
}

/// Test conditions, printed above the result.
pub(super) const ABOUT: &str = "\
TCP and 64-byte UDP at full rate, over a bare veth pair and over a link.
Errors of round trips: measured - base - twice the delay.";

pub(super) fn measure(time: Duration, kind: &str) -> Result<LiveResult, Error> {
    // Interleave the runs and take the median of three, because other programs share the machine.
    let (mut bare, mut link, mut unseen) = (Vec::new(), Vec::new(), 0);
    for _ in 0..3 {
        bare.push(side(&Testbed::bare()?, time / 3)?.0);
        let (side, lost) = link_side(time / 3, kind)?;
        link.push(side);
        unseen = lost.max(unseen);
    }
    let [bare, link] = [bare, link].map(|sides| PathPerformance::median(&sides));
    let errors = DELAYS_MS.iter().map(|ms| rtt_error(*ms, link.rtt_ms, kind));
    let rtt_errors = errors.collect::<Result<_, _>>()?;
    Ok(LiveResult {
        small_udp_share: link.small_udp_received_pps / bare.small_udp_received_pps.max(1.0),
        base_rtt_over_bare_ms: link.rtt_ms - bare.rtt_ms,
        bare,
        link,
        rtt_errors,
        unseen,
    })
}

/// Measures a link. Also returns the number of lost frames that the emulator did not count,
/// excluding receive-socket overflow after the emulator.
fn link_side(time: Duration, kind: &str) -> Result<(PathPerformance, i64), Error> {
    let testbed = Testbed::emulated()?;
    let link = LinkConfig::default;
    let running = testbed.start(kind, link(), link(), RunConfig::default())?;
    let (side, flood) = side(&testbed, time)?;
    let report = running.stop();
    let (traffic, artifacts) = (&report.links[0].traffic, &report.links[0].artifacts);
    let seen = traffic.packets_in + artifacts.of("ring_full") + artifacts.of("too_long");
    Ok((side, (flood.sent as i64 - seen as i64).max(0)))
}

fn side(testbed: &Testbed, time: Duration) -> Result<(PathPerformance, Datagrams), Error> {
    let path = testbed.path();
    let timeout = Duration::from_secs(1);
    round_trips(path, 5, Duration::ZERO, timeout)?;
    let trips = round_trips(path, TRIPS, Duration::from_millis(2), timeout)?;
    let tcp = tcp_flow(path, time / 2, time / 8)?;
    let flow = UdpFlow::new(64, 0, time / 2);
    let flood = udp_flow(path, flow)?;
    let side = PathPerformance {
        tcp_gbit: tcp.goodput / 1e9,
        small_udp_sent_pps: flood.sent as f64 / flow.duration.as_secs_f64(),
        small_udp_received_pps: flood.received as f64 / flow.duration.as_secs_f64(),
        rtt_ms: trips.median_ns().unwrap_or(0) as f64 / 1e6,
    };
    Ok((side, flood))
}

fn rtt_error(delay_ms: u64, base_ms: f64, kind: &str) -> Result<RttError, Error> {
    let testbed = Testbed::emulated()?;
    let link = || LinkConfig {
        delay: Nanos::from_millis(delay_ms).into(),
        ..LinkConfig::default()
    };
    let running = testbed.start(kind, link(), link(), RunConfig::default())?;
    let timeout = Duration::from_millis(delay_ms * 2 + 500);
    round_trips(testbed.path(), 3, Duration::ZERO, timeout)?;
    let count = TRIPS.min((5_000 / delay_ms) as u32);
    let trips = round_trips(testbed.path(), count, Duration::ZERO, timeout)?;
    running.stop();
    let median_ms = trips.median_ns().unwrap_or(0) as f64 / 1e6;
    Ok(RttError {
        delay_ms,
        error_ms: median_ms - base_ms - 2.0 * delay_ms as f64,
    })
}

impl PathPerformance {
    fn median(sides: &[PathPerformance]) -> PathPerformance {
        let median = |value: fn(&PathPerformance) -> f64| median(sides.iter().map(value));
        PathPerformance {
            tcp_gbit: median(|side| side.tcp_gbit),
            small_udp_sent_pps: median(|side| side.small_udp_sent_pps),
            small_udp_received_pps: median(|side| side.small_udp_received_pps),
            rtt_ms: median(|side| side.rtt_ms),
        }
    }
}
