//! Frame loss, compared with the exact binomial bounds.

use std::time::Duration;

use longwire_engine::Probability;
use longwire_testbed::support::binomial_interval;
use longwire_traffic::sockets::{Datagrams, UdpFlow};
use serde::Serialize;

/// Results for one loss probability.
#[derive(Debug, Serialize)]
pub struct LossRow {
    loss_percent: f64,
    packets: u64,
    received: u64,
    measured_percent: f64,
    error_percent: f64,
    /// Bounds of the 99 % interval for the number of lost frames.
    lost_least: u64,
    lost_most: u64,
    inside: bool,
    artifacts: u64,
}

/// Rate in datagrams/s, slow enough that the receiver drops none.
const PER_SECOND: u64 = 50_000;

/// Returns a flow of `packets` datagrams in 64-byte frames.
pub(super) fn flow(packets: u64) -> UdpFlow {
    UdpFlow {
        frame_len: 64,
        per_second: PER_SECOND,
        count: Some(packets),
        duration: Duration::from_secs(3600),
        timeout: Duration::from_millis(300),
        flows: 1,
    }
}

/// Returns the row of a flow over a link with this loss probability.
pub(super) fn row(probability: Probability, got: &Datagrams, artifacts: u64) -> LossRow {
    let lost = got.sent - got.received;
    let share = probability.as_f64();
    let (least, most) = binomial_interval(got.sent, share, 0.99);
    let measured = lost as f64 / got.sent.max(1) as f64;
    LossRow {
        loss_percent: share * 100.0,
        packets: got.sent,
        received: got.received,
        measured_percent: measured * 100.0,
        error_percent: (measured / share - 1.0) * 100.0,
        lost_least: least,
        lost_most: most,
        inside: (least..=most).contains(&lost),
        artifacts,
    }
}
