//! The ports whose carriers follow links.

use longwire_engine::LinkId;
use longwire_packet::bridge::PortIndex;

/// A port whose interface has a carrier unless all links toward it are off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCarrier {
    /// The port.
    pub port: PortIndex,
    /// Its name.
    pub name: String,
    /// The links toward it. If empty, the port keeps its carrier.
    pub toward: Vec<LinkId>,
}

/// The ports whose carriers follow links, and their losses.
#[derive(Debug, Default)]
pub(super) struct FollowedCarriers {
    pub followed: Vec<PortCarrier>,
    /// Carrier losses by entry of `followed`.
    pub losses: Vec<u64>,
    /// Set if a link's state has changed, or frames in transit delay the loss of a carrier.
    pub changed: bool,
}
