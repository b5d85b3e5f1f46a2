//! TCP and UDP goodput over links with many rates, measured concurrently.
//!
//! A full frame takes 1514 bytes plus 24 of Ethernet (preamble, FCS, gap), so a link of rate R
//! carries R / (8 × 1538) frames/s. The goodput of TCP is at most R × 1448 / 1538 (1448 bytes of
//! payload; IPv4, TCP and its timestamps take 52), that of UDP R × 1472 / 1538. The error is the
//! shortfall from these bounds.

use std::time::Duration;

use longwire_engine::BitRate;
use serde::Serialize;

use crate::program::joined;
use crate::stations::{Lane, Stations};
use longwire::Error;
use longwire::bench::rate::{FULL_FRAME, TCP_PAYLOAD, UDP_PAYLOAD, capacity};
use longwire_traffic::sockets::{TrafficError, UdpFlow, udp_flow, windowed_tcp_flow};

/// Results of one link.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BandwidthRow {
    rate_bits: u64,
    /// Payload rates in bit/s: the maximum permitted by the link, and the received rate.
    tcp_expected: f64,
    tcp_measured: f64,
    tcp_error_percent: f64,
    udp_expected: f64,
    udp_measured: f64,
    udp_error_percent: f64,
}

/// UDP's sending rate as a multiple of the link's.
const UDP_EXCESS: f64 = 1.1;

/// Receive window of TCP in bytes: smaller than the links' queues, so that no segment is dropped
/// and retransmitted.
const TCP_WINDOW: usize = 64 << 10;

/// Capacity of the links' queues.
pub(super) const QUEUE: &str = "100p";

pub(super) fn measure(
    stations: &Stations,
    lanes: &[(BitRate, Lane)],
    time: Duration,
) -> Result<Vec<BandwidthRow>, Error> {
    let tcp = together(lanes, |_, lane| {
        let flow = windowed_tcp_flow(stations.path(lane), time, time / 5, Some(TCP_WINDOW))?;
        Ok(flow.goodput)
    })?;
    let udp = together(lanes, |rate, lane| {
        let per_second = (capacity(rate) * UDP_EXCESS).ceil() as u64;
        let flow = UdpFlow {
            timeout: Duration::from_secs(1),
            ..UdpFlow::new(FULL_FRAME, per_second, time)
        };
        let got = udp_flow(stations.path(lane), flow)?;
        Ok(got.steady_per_second * 8.0 * UDP_PAYLOAD)
    })?;
    let rows = lanes.iter().zip(tcp.iter().zip(&udp));
    Ok(rows
        .map(|((rate, _), (tcp, udp))| row(*rate, *tcp, *udp))
        .collect())
}

/// Measures all lanes concurrently, each on a separate thread.
fn together(
    lanes: &[(BitRate, Lane)],
    flow: impl Fn(BitRate, Lane) -> Result<f64, TrafficError> + Sync,
) -> Result<Vec<f64>, TrafficError> {
    let flow = &flow;
    std::thread::scope(|scope| {
        let spawned = lanes
            .iter()
            .map(|(rate, lane)| scope.spawn(move || flow(*rate, *lane)));
        let threads: Vec<_> = spawned.collect();
        threads.into_iter().map(joined).collect()
    })
}

fn row(rate: BitRate, tcp_measured: f64, udp_measured: f64) -> BandwidthRow {
    let expected = |payload: f64| capacity(rate) * 8.0 * payload;
    let (tcp_expected, udp_expected) = (expected(TCP_PAYLOAD), expected(UDP_PAYLOAD));
    BandwidthRow {
        rate_bits: rate.bits_per_sec(),
        tcp_expected,
        tcp_measured,
        tcp_error_percent: (tcp_measured / tcp_expected - 1.0) * 100.0,
        udp_expected,
        udp_measured,
        udp_error_percent: (udp_measured / udp_expected - 1.0) * 100.0,
    }
}
