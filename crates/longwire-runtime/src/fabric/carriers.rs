//! The ports whose carriers follow links.

use longwire_engine::LinkId;
use longwire_packet::bridge::PortIndex;

/// A port whose interface has a carrier while a link toward it is not down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCarrier {
    /// The port.
    pub port: PortIndex,
    /// Its name.
    pub name: String,
    /// The links toward it; without any, it keeps its carrier.
    pub toward: Vec<LinkId>,
}

/// The carriers that follow links.
#[derive(Debug, Default)]
pub(super) struct FollowedCarriers {
    pub followed: Vec<PortCarrier>,
    /// How often each was lost.
    pub losses: Vec<u64>,
    /// The state of a link has changed, or frames in transit delay a loss.
    pub changed: bool,
}
