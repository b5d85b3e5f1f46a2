//! Forwarding decisions and counters.

use super::PortIndex;

/// A forwarding decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Drop.
    None(NotForwarded),
    /// Send to one port.
    One(PortIndex),
    /// Send to all ports except the ingress port.
    Flood(Flooded),
}

/// The reason why a frame is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotForwarded {
    /// The destination is at the ingress port.
    Reflection,
    /// The address is reserved for bridges.
    Reserved,
    /// The frame is shorter than an Ethernet header.
    Short,
    /// The source address is invalid: zero or a group address.
    Source,
    /// The ingress port exceeds the storm limit.
    Storm,
    /// The destination has no static entry.
    Unknown,
    /// The port has no partner.
    Unpaired,
    /// The port does not exist.
    NoSuchPort,
}

impl NotForwarded {
    /// All reasons.
    pub const ALL: [NotForwarded; 8] = [
        NotForwarded::Reflection,
        NotForwarded::Reserved,
        NotForwarded::Short,
        NotForwarded::Source,
        NotForwarded::Storm,
        NotForwarded::Unknown,
        NotForwarded::Unpaired,
        NotForwarded::NoSuchPort,
    ];

    /// Returns the reason's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            NotForwarded::Reflection => "reflection",
            NotForwarded::Reserved => "reserved",
            NotForwarded::Short => "short",
            NotForwarded::Source => "source",
            NotForwarded::Storm => "storm",
            NotForwarded::Unknown => "unknown",
            NotForwarded::Unpaired => "unpaired",
            NotForwarded::NoSuchPort => "no_such_port",
        }
    }
}

/// The reason why a frame is flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flooded {
    /// Broadcast destination.
    Broadcast,
    /// Multicast destination.
    Multicast,
    /// Unknown destination.
    Unknown,
}

impl Flooded {
    /// All reasons, in index order.
    pub const ALL: [Flooded; 3] = [Flooded::Broadcast, Flooded::Multicast, Flooded::Unknown];

    /// Returns the reason's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Flooded::Broadcast => "broadcast",
            Flooded::Multicast => "multicast",
            Flooded::Unknown => "unknown",
        }
    }
}

/// Bridge counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames sent to one port.
    pub forwarded: u64,
    /// Flooded frames, in the order of [`Flooded::ALL`].
    pub flooded: [u64; Flooded::ALL.len()],
    /// Frames not forwarded, in the order of [`NotForwarded::ALL`].
    pub not_forwarded: [u64; NotForwarded::ALL.len()],
    /// Stations learned, including those that returned after ageing.
    pub learnt: u64,
    /// Stations that moved to another port.
    pub moved: u64,
    /// Stations found to have aged.
    pub aged: u64,
    /// Frames whose source was not learned because the table was full.
    pub not_learnt: u64,
    /// Frames from stations at a port other than that of their static entry; they are forwarded.
    pub static_elsewhere: u64,
    /// Number of times that evidence of a loop was found.
    pub loop_signs: u64,
}

impl BridgeCounters {
    /// Returns the number of frames dropped for this reason.
    pub fn not_forwarded(&self, reason: NotForwarded) -> u64 {
        self.not_forwarded[reason as usize]
    }

    #[inline]
    pub(super) fn note(&mut self, forwarding: Forwarding) {
        match forwarding {
            Forwarding::One(_) => self.forwarded += 1,
            Forwarding::Flood(kind) => self.flooded[kind as usize] += 1,
            Forwarding::None(reason) => self.not_forwarded[reason as usize] += 1,
        }
    }
}
