//! Configuration of a bridge, and its errors.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::{Nanos, PacketRate, Packets};

use super::PortIndex;

/// The selection of output ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Switching {
    /// By learnt stations and static entries; unknown destinations are flooded (IEEE
    /// 802.1D, section 7.7).
    #[default]
    Bridge,
    /// Each port has a partner: all frames that arrive at one leave at the other.
    /// Nothing is learnt. A port without a partner forwards nothing.
    Pairs(Vec<(PortIndex, PortIndex)>),
    /// By static entries alone. Nothing is learnt; broadcast and multicast
    /// are flooded, and unicast without an entry is dropped.
    Static,
}

/// Treatment of frames to 01-80-C2-00-00-00 … 0F: spanning tree, pause frames, LACP,
/// LLDP (IEEE 802.1D, table 7-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserved {
    /// They are dropped, as in the standard: they are for the bridge.
    #[default]
    Drop,
    /// They are flooded like other multicast, so that devices on both sides consider
    /// themselves directly connected.
    Pass,
}

/// A station with a given port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticEntry {
    /// The VLAN, 0 for untagged frames, to 4094.
    pub vlan: u16,
    /// The station's Ethernet address.
    pub mac: [u8; 6],
    /// Its port.
    pub port: PortIndex,
}

/// A limit of flooded frames for each port: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormLimit {
    /// Flooded frames a second that arrive at one port, on average.
    pub rate: PacketRate,
    /// Maximum burst: 1 to 2^20.
    pub burst: Packets,
}

impl StormLimit {
    /// The largest burst.
    pub const BURST_MAX: Packets = Packets(1 << 20);
}

/// A bridge's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Number of ports, at least one.
    pub ports: u16,
    /// The selection of output ports.
    pub switching: Switching,
    /// How long a silent station is remembered; counted in ticks of 2^20 ns, so to
    /// within 2.1 ms. 300 s by default (802.1D, table 7-5). Zero learns nothing,
    /// [`Nanos::MAX`] forgets nothing.
    pub ageing: Nanos,
    /// Maximum number of remembered stations, static ones included: 65,536 by default,
    /// at most 2^24. Memory is 32 bytes for each, rounded up to a power of two,
    /// allocated when the bridge is created.
    pub table_max: u32,
    /// Stations with given ports. They are not learnt, do not age and do not move.
    pub statics: Vec<StaticEntry>,
    /// Frames to reserved addresses.
    pub reserved: Reserved,
    /// Limit of flooded frames. None by default.
    pub storm: Option<StormLimit>,
    /// Loop detection. On by default.
    pub loop_detection: bool,
    /// Determines the positions of stations in the table. Decisions do not depend on
    /// it, but a sender who knows it can choose addresses for which the table has no
    /// space.
    pub seed: u64,
}

impl BridgeConfig {
    /// The most stations.
    pub const TABLE_MAX: u32 = 1 << 24;

    /// Creates the configuration of a learning bridge with `ports` ports.
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

    /// Returns each port's partner.
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

/// An invalid configuration of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// Without ports.
    #[error("a bridge needs at least one port")]
    NoPorts,
    /// The size of the table.
    #[error("a table of {0} stations: there can be 1 to {max}", max = BridgeConfig::TABLE_MAX)]
    TableMax(u32),
    /// A token bucket that lets nothing through, or one that is too large.
    #[error("a burst of {0} flooded frames: there can be 1 to {max}", max = StormLimit::BURST_MAX.0)]
    StormBurst(u64),
    /// A port that the bridge does not have.
    #[error("there is no port {port}: this bridge has {ports}, counted from 0")]
    NoSuchPort {
        /// The port.
        port: PortIndex,
        /// How many there are.
        ports: u16,
    },
    /// A pair of one port.
    #[error("port {0} is paired with itself; name two ports")]
    OwnPartner(PortIndex),
    /// A port in two pairs.
    #[error("port {0} is in two pairs; a port has one partner")]
    TwoPartners(PortIndex),
    /// A static entry of an address that is no station's.
    #[error("{mac} is no station's address: it is zero, or of a group", mac = DisplayMac(.0))]
    NoStation([u8; 6]),
    /// A VLAN out of range.
    #[error("VLAN {0}: there are 1 to 4094, and 0 for untagged frames")]
    NoSuchVlan(u16),
    /// More static entries than the table may hold.
    #[error(
        "no room for another static entry among {0} stations; raise the table's size, or remove \
         entries"
    )]
    TableFull(u32),
}

impl BridgeError {
    pub(super) fn no_port(port: PortIndex, ports: u16) -> BridgeError {
        BridgeError::NoSuchPort { port, ports }
    }
}

/// An Ethernet address in messages.
struct DisplayMac<'a>(&'a [u8; 6]);

impl core::fmt::Display for DisplayMac<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index > 0 { ":" } else { "" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}
