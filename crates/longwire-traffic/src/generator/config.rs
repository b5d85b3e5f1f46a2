//! Generator configuration.

use std::sync::Arc;

use longwire_engine::Nanos;

use super::flows::FlowConfig;
use super::payload::Payload;
use crate::arrivals::{ArrivalModel, LoadRate};
use crate::sizes::SizeModel;

/// Generator configuration.
#[derive(Clone, Debug)]
pub struct GeneratorConfig {
    /// Addresses, ports and headers.
    pub flows: FlowConfig,
    /// Frame lengths, from the destination MAC address to the end of the payload.
    pub sizes: Arc<dyn SizeModel>,
    /// Distribution of frames around the mean rate.
    pub arrivals: Arc<dyn ArrivalModel>,
    /// Mean rate; `None` sends as fast as the port accepts frames.
    pub rate: Option<LoadRate>,
    /// Payload after the probe.
    pub payload: Payload,
    /// Stream number of the [`Probe`](longwire_packet::probe::Probe) at the start of each payload,
    /// if any. A paced probe contains its due time, so that a late departure counts as delay; an
    /// unpaced probe contains the time at which it was generated.
    pub probe: Option<u32>,
    /// Ends after this many frames.
    pub count: Option<u64>,
    /// Ends before the first frame due at or after this time.
    pub time: Option<Nanos>,
    /// Seed of sizes, arrivals, random flows and random payload.
    pub seed: u64,
}
