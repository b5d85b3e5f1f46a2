//! Expected results of the probe, derived from a link's configuration.

use longwire_engine::LinkConfig;
use longwire_engine::models::rate::Serializer;
use longwire_units::Nanos;
use serde::Serialize;

use super::FRAME;

/// Ethernet header and largest IPv4 packet.
const FULL_FRAME: u32 = 1514;

/// TCP payload of a full frame: without IPv4 header, TCP header and timestamp option.
const TCP_PAYLOAD: u32 = 1500 - 20 - 20 - 12;

/// Expected results of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Expectation {
    /// One-way delay of a small datagram on an idle link, in milliseconds:
    /// serialisation plus mean delay.
    pub delay_ms: f64,
    /// The rate in bit/s, if limited.
    pub rate_bits: Option<f64>,
    /// The payload rate of a TCP connection that saturates the link, in Mbit/s.
    pub tcp_mbit: Option<f64>,
    /// The loss models, as configured.
    pub loss: Vec<String>,
}

impl Expectation {
    /// Returns the expected results of this configuration.
    pub fn of(config: &LinkConfig) -> Expectation {
        let serialisation = |len| {
            let mut serializer = Serializer::new(config.rate.bit_rate(), config.framing);
            serializer.depart(Nanos::ZERO, len)
        };
        let delay = serialisation(FRAME).saturating_add(config.delay.mean());
        let tcp = config.rate.bit_rate().map(|_| {
            let seconds = serialisation(FULL_FRAME).as_secs_f64();
            f64::from(TCP_PAYLOAD * 8) / seconds.max(1e-9) / 1e6
        });
        Expectation {
            delay_ms: delay.as_secs_f64() * 1e3,
            rate_bits: config
                .rate
                .bit_rate()
                .map(|rate| rate.bits_per_sec() as f64),
            tcp_mbit: tcp,
            loss: config.loss.iter().map(ToString::to_string).collect(),
        }
    }
}
