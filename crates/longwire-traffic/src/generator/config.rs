//! The configuration of a generator.

use std::sync::Arc;

use crate::arrivals::{ArrivalModel, LoadRate};
use crate::sizes::SizeModel;
use longwire_engine::Nanos;

use super::flows::FlowConfig;
use super::payload::Payload;

/// Configuration of a generator.
#[derive(Clone, Debug)]
pub struct GeneratorConfig {
    /// Addresses, ports and headers.
    pub flows: FlowConfig,
    /// How long frames are, from the destination MAC address to the end of the
    /// payload.
    pub sizes: Arc<dyn SizeModel>,
    /// How they are spread around the rate.
    pub arrivals: Arc<dyn ArrivalModel>,
    /// The mean rate; `None` is as fast as the port takes them.
    pub rate: Option<LoadRate>,
    /// The bytes after the headers and the probe.
    pub payload: Payload,
    /// Stamp each frame with a [`Probe`](longwire_packet::probe::Probe) of this stream at
    /// the beginning of its payload. A paced frame carries the time at which it was due,
    /// so that a late departure counts as delay; frames without times carry the time at
    /// which they were made.
    pub probe: Option<u32>,
    /// End after this many frames.
    pub count: Option<u64>,
    /// End before the frame that would be due this long after the start.
    pub time: Option<Nanos>,
    /// The seed of sizes, arrivals, random flows and random payload.
    pub seed: u64,
}
