//! Configuration of a generator, its limits and errors.

use std::sync::Arc;

use longwire_engine::Nanos;

use super::flows::FlowConfig;
use super::payload::Payload;
use crate::arrivals::{ArrivalModel, LoadRate};
use crate::sizes::SizeModel;

/// Configuration of a generator.
#[derive(Clone, Debug)]
pub struct GeneratorConfig {
    /// Addresses, ports and headers.
    pub flows: FlowConfig,
    /// Frame lengths, from the destination MAC address to the end of the payload.
    pub sizes: Arc<dyn SizeModel>,
    /// Distribution of frames around the rate.
    pub arrivals: Arc<dyn ArrivalModel>,
    /// Mean rate; `None` is as fast as the port accepts frames.
    pub rate: Option<LoadRate>,
    /// Payload after the probe.
    pub payload: Payload,
    /// Stream number of the [`Probe`](longwire_packet::probe::Probe) at the start of each
    /// payload, if any. A paced probe carries the due time, so that a late departure counts
    /// as delay; an unpaced one carries the time of its generation.
    pub probe: Option<u32>,
    /// Ends after this many frames.
    pub count: Option<u64>,
    /// Ends before the first frame due at or after this time.
    pub time: Option<Nanos>,
    /// Seed of sizes, arrivals, random flows and random payload.
    pub seed: u64,
}

/// Maximum number of flows, at 44 bytes each.
pub const FLOWS_MAX: u64 = 1 << 20;

/// Maximum consecutive MAC addresses. They differ in the last three octets only, so none
/// becomes a group address or changes its OUI.
pub const MACS_MAX: u64 = 1 << 24;

/// Maximum length of a payload pattern in bytes.
pub const PAYLOAD_MAX: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GeneratorError {
    #[error(
        "sizes of {size} bytes are too short: headers take {headers} bytes{}; the minimum is {least}",
        if *.probe { " and the probe 18" } else { "" }
    )]
    TooShort {
        size: u32,
        headers: u32,
        probe: bool,
        least: u32,
    },
    #[error(
        "{count} flows are not distinct: sources, destinations and ports allow {possible}; \
         widen one of them"
    )]
    TooManyFlows { count: u64, possible: u128 },
    #[error("{count} consecutive MAC addresses are outside 1..{MACS_MAX}")]
    MacsRange { count: u64 },
    #[error("concurrent streams need at least one stream, and a rate for each")]
    NoStream,
    #[error("{count} flows are outside 1..{FLOWS_MAX}")]
    FlowsRange { count: u64 },
    #[error("sources are {sources} but destinations are {destinations}")]
    Mixed {
        sources: &'static str,
        destinations: &'static str,
    },
    #[error("'{text}' is {wrong}; write for example {example}")]
    Text {
        text: String,
        wrong: &'static str,
        example: &'static str,
    },
}

/// Creates the error for a text that cannot be parsed.
pub(super) fn refused(text: &str, wrong: &'static str, example: &'static str) -> GeneratorError {
    GeneratorError::Text {
        text: text.to_owned(),
        wrong,
        example,
    }
}
