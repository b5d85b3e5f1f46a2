//! Frame generation from flows, sizes and arrivals.
//!
//! Headers and payload are prepared in a template. Only varying fields are written per frame, and
//! checksums derive from precomputed sums, so the cost does not depend on frame length.

mod addresses;
mod error;
mod feed;
mod flows;
mod payload;
mod template;
mod together;

pub use addresses::{AddressRange, PortRange};
pub use error::{FLOWS_MAX, GeneratorError, MACS_MAX, PAYLOAD_MAX};
pub use feed::GeneratorFeed;
pub use flows::{FlowConfig, FlowOrder, Protocol, TcpFlags, VlanTag};
pub use longwire_packet::MacAddress;
pub use payload::Payload;
pub use together::TogetherFeed;

use std::sync::Arc;

use longwire_engine::Nanos;

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
