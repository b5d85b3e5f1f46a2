//! Bridge configuration and its errors.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::{Nanos, PacketRate, Packets};

use super::PortIndex;
use crate::mac::MacAddress;

/// Selection of egress ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Switching {
    /// By learned stations and static entries. Frames to unknown destinations are flooded (IEEE
    /// 802.1D, section 7.7).
    #[default]
    Bridge,
    /// In pairs: all frames from a port leave through its partner; a port without a partner
    /// forwards nothing. Does not learn.
    Pairs(Vec<(PortIndex, PortIndex)>),
    /// By static entries only. Broadcast and multicast are flooded; unicast without an entry is
    /// dropped. Does not learn.
    Static,
}

/// Handling of frames to 01-80-C2-00-00-00 … 0F: spanning tree, pause frames, LACP, LLDP (IEEE
/// 802.1D, table 7-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserved {
    /// Drop them, as the standard requires: their destination is the bridge.
    #[default]
    Drop,
    /// Flood them like other multicast, so that devices on different ports see each other as
    /// neighbours.
    Pass,
}

/// A static entry for a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticEntry {
    /// VLAN, 0 (untagged) to 4094.
    pub vlan: u16,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Port.
    pub port: PortIndex,
}

/// A per-port token bucket for flooded frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormLimit {
    /// Mean flooded frames/s per ingress port.
    pub rate: PacketRate,
    /// Burst in frames, 1 to 2^20.
    pub burst: Packets,
}

impl StormLimit {
    /// Maximum burst.
    pub const BURST_MAX: Packets = Packets(1 << 20);
}

/// Configuration of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Number of ports, at least one.
    pub ports: u16,
    /// Selection of egress ports.
    pub switching: Switching,
    /// Ageing time of silent stations, in ticks of 2^20 ns, so accurate to 2.1 ms; 300 s by default
    /// (802.1D, table 7-5). Zero disables learning; [`Nanos::MAX`] disables ageing.
    pub ageing: Nanos,
    /// Maximum number of stations, including static ones: 65,536 by default, at most 2^24. The
    /// table has 32 bytes per station, rounded up to a power of two, and is allocated at creation.
    pub table_max: u32,
    /// Static entries, which are never learned, aged or moved.
    pub statics: Vec<StaticEntry>,
    /// Handling of frames to reserved addresses.
    pub reserved: Reserved,
    /// Limit on flooded frames; none by default.
    pub storm: Option<StormLimit>,
    /// Whether to detect loops; on by default.
    pub loop_detection: bool,
    /// Seed for the table's hash. It does not affect decisions, but a sender who knows it could
    /// choose colliding addresses.
    pub seed: u64,
}

impl Default for BridgeConfig {
    fn default() -> BridgeConfig {
        BridgeConfig::new(0)
    }
}

impl BridgeConfig {
    /// Maximum number of stations.
    pub const TABLE_MAX: u32 = 1 << 24;

    /// Creates the configuration of a learning bridge.
    pub fn new(ports: u16) -> BridgeConfig {
        BridgeConfig {
            ports,
            switching: Switching::Bridge,
            ageing: Nanos::from_secs(300),
            table_max: 65_536,
            statics: Vec::new(),
            reserved: Reserved::Drop,
            storm: None,
            loop_detection: true,
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), BridgeError> {
        if self.ports == 0 {
            return Err(BridgeError::NoPorts);
        }
        if self.table_max == 0 || self.table_max > BridgeConfig::TABLE_MAX {
            return Err(BridgeError::TableMax(self.table_max));
        }
        if let Some(limit) = self.storm
            && !(Packets(1)..=StormLimit::BURST_MAX).contains(&limit.burst)
        {
            return Err(BridgeError::StormBurst(limit.burst.0));
        }
        Ok(())
    }

    /// Returns each port's partner, or `None` unless ports are switched in pairs.
    pub(super) fn partners(&self) -> Result<Option<Vec<Option<PortIndex>>>, BridgeError> {
        let Switching::Pairs(pairs) = &self.switching else {
            return Ok(None);
        };
        let mut partners = vec![None; self.ports.into()];
        for (a, b) in pairs {
            if a == b {
                return Err(BridgeError::OwnPartner(*a));
            }
            for (port, partner) in [(a, b), (b, a)] {
                let place = partners.get_mut(usize::from(port.0));
                let place = place.ok_or(BridgeError::no_port(*port, self.ports))?;
                if place.replace(*partner).is_some() {
                    return Err(BridgeError::TwoPartners(*port));
                }
            }
        }
        Ok(Some(partners))
    }
}

/// Error in a bridge configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// No ports.
    #[error("a bridge needs at least one port")]
    NoPorts,
    /// Invalid table size.
    #[error("a table of {0} stations is outside 1..{max}", max = BridgeConfig::TABLE_MAX)]
    TableMax(u32),
    /// Invalid burst size.
    #[error("a burst of {0} flooded frames is outside 1..{max}", max = StormLimit::BURST_MAX.0)]
    StormBurst(u64),
    /// A port that does not exist.
    #[error("unknown port {port}; the bridge has {ports}, numbered from 0")]
    NoSuchPort {
        /// The port.
        port: PortIndex,
        /// Number of ports.
        ports: u16,
    },
    /// A port is paired with itself.
    #[error("port {0} is paired with itself")]
    OwnPartner(PortIndex),
    /// A port is in several pairs.
    #[error("port {0} is in two pairs")]
    TwoPartners(PortIndex),
    /// A static entry for an address that is not a station address.
    #[error("{mac} is zero or multicast, not a station address", mac = MacAddress(*.0))]
    NoStation([u8; 6]),
    /// Invalid VLAN.
    #[error("VLAN {0} is outside 1..4094; write 0 for untagged")]
    NoSuchVlan(u16),
    /// More static entries than the table can hold.
    #[error("the station table ({0} entries) is full; enlarge it, or remove static entries")]
    TableFull(u32),
}

impl BridgeError {
    pub(super) fn no_port(port: PortIndex, ports: u16) -> BridgeError {
        BridgeError::NoSuchPort { port, ports }
    }
}
