//! `bench rate`: UDP and TCP throughput at configured rates.

use std::time::Duration;

use longwire_engine::models::framing::Framing;
use longwire_engine::{BitRate, LinkConfig};
use longwire_runtime::RunConfig;
use longwire_traffic::sockets::{UdpFlow, tcp_flow, udp_flow};
use serde::Serialize;

use super::RateArgs;
use super::testbed::Testbed;
use crate::Error;

/// A row: one rate and protocol.
#[derive(Debug, Serialize)]
pub(crate) struct RateRow {
    rate_bits: u64,
    protocol: &'static str,
    /// Payload rate after framing overhead.
    expected_bits: f64,
    measured_bits: f64,
    error_percent: f64,
    /// Tail drops by the model: few with TCP; with UDP, every frame above the rate.
    queue_drops: u64,
    artifacts: u64,
}

/// Length of a full frame: Ethernet header plus a 1500-byte IPv4 packet.
pub const FULL_FRAME: u32 = 1514;

/// UDP payload of a full frame, in bytes.
pub const UDP_PAYLOAD: f64 = (1500 - 20 - 8) as f64;

/// TCP payload of a full frame: excludes the IPv4 header, TCP header and timestamp option.
pub const TCP_PAYLOAD: f64 = (1500 - 20 - 20 - 12) as f64;

/// Test conditions, and published results of LinkEM (Joglekar 2004) and Rattan.
pub(super) const ABOUT: &str = "\
Payload rate against the rate expected with Ethernet framing.
LinkEM: 0.75 to 1.16 % (TCP); Rattan: 0.04 % UDP, -8.7 % TCP at 1 Gbit/s.";

pub(crate) fn measure(args: &RateArgs, kind: &str) -> Result<Vec<RateRow>, Error> {
    let mut rows = Vec::new();
    for rate in &args.rate {
        rows.push(row(*rate, "udp", UDP_PAYLOAD, args, kind)?);
        rows.push(row(*rate, "tcp", TCP_PAYLOAD, args, kind)?);
    }
    Ok(rows)
}

/// Returns the number of full frames/s that a rate carries, with Ethernet framing.
pub fn capacity(rate: BitRate) -> f64 {
    rate.bits_per_sec() as f64 / Framing::ETHERNET.wire_bits(FULL_FRAME) as f64
}

fn link(rate: Option<BitRate>) -> LinkConfig {
    LinkConfig {
        rate: rate.into(),
        framing: Framing::ETHERNET,
        ..LinkConfig::default()
    }
}

/// Returns the duration of a row: `args.time`, or the time of 200 full frames if that is longer.
fn duration(rate: BitRate, args: &RateArgs) -> Duration {
    let frames = 200;
    let frame_bits = Framing::ETHERNET.wire_bits(FULL_FRAME);
    let least = (frames * frame_bits) as f64 / rate.bits_per_sec() as f64;
    Duration::from_secs_f64(args.time.as_secs_f64().max(least))
}

/// Measures a protocol with `payload` bytes in a full frame.
fn row(
    rate: BitRate,
    protocol: &'static str,
    payload: f64,
    args: &RateArgs,
    kind: &str,
) -> Result<RateRow, Error> {
    let testbed = Testbed::emulated()?;
    let running = testbed.start(kind, link(Some(rate)), link(None), RunConfig::default())?;
    let duration = duration(rate, args);
    let measured_bits = if protocol == "udp" {
        // 10 % above capacity saturates the link without flooding it.
        let per_second = (capacity(rate) * 1.1).ceil() as u64;
        let flow = UdpFlow {
            timeout: Duration::from_secs(1),
            ..UdpFlow::new(FULL_FRAME, per_second, duration)
        };
        udp_flow(testbed.path(), flow)?.steady_per_second * 8.0 * payload
    } else {
        tcp_flow(testbed.path(), duration, duration / 5)?.goodput
    };
    let report = running.stop();
    let up = &report.links[0];
    let expected_bits = capacity(rate) * 8.0 * payload;
    Ok(RateRow {
        rate_bits: rate.bits_per_sec(),
        protocol,
        expected_bits,
        measured_bits,
        error_percent: (measured_bits / expected_bits - 1.0) * 100.0,
        queue_drops: up.drops.of("queue_full"),
        artifacts: up.artifacts.total(),
    })
}
