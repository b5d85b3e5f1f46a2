//! Decisions about frames, and counters.

use super::PortIndex;

/// A decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Nowhere.
    None(NotForwarded),
    /// To one port.
    One(PortIndex),
    /// To all ports but the one it arrived at.
    Flood(Flooded),
}

/// The reason why a frame is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotForwarded {
    /// Its destination is at the port it arrived at.
    Reflection,
    /// It is to a reserved address, for the bridge itself.
    Reserved,
    /// It is shorter than an Ethernet header.
    Short,
    /// Its source address is zero, or of a group: no station sent it.
    Source,
    /// The storm limit of its port is exceeded.
    Storm,
    /// There is no static entry for its destination.
    Unknown,
    /// Its port has no partner.
    Unpaired,
    /// The bridge has no such port.
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

    /// The reason's name in reports and JSON.
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
    /// It is for all.
    Broadcast,
    /// It is for a group.
    Multicast,
    /// The port of its destination is not known.
    Unknown,
}

impl Flooded {
    /// Every reason, in the order of their indices.
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

/// Counters of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames to one port.
    pub forwarded: u64,
    /// Frames to all ports, in the order of [`Flooded::ALL`].
    pub flooded: [u64; Flooded::ALL.len()],
    /// Frames to no port, in the order of [`NotForwarded::ALL`].
    pub not_forwarded: [u64; NotForwarded::ALL.len()],
    /// Stations learnt, including aged ones that returned.
    pub learnt: u64,
    /// Stations seen at another port than before.
    pub moved: u64,
    /// Aged stations found when they returned, or when their rows were checked.
    pub aged: u64,
    /// Frames of stations that were not learnt because the table was full.
    pub not_learnt: u64,
    /// Frames of stations at another port than that of their static entry. They are
    /// forwarded.
    pub static_elsewhere: u64,
    /// Signs of a loop.
    pub loop_signs: u64,
}

impl BridgeCounters {
    /// Returns the number of frames not forwarded for this reason.
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
