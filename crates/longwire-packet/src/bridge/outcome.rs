//! What becomes of a frame, and what is counted of it.

use super::PortIndex;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Nowhere.
    None(NotForwarded),
    /// To one port.
    One(PortIndex),
    /// To all ports but the one it arrived at.
    Flood(Flooded),
}

/// Why a frame goes nowhere.
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
    /// Its port has had enough frames flooded.
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

/// Why a frame goes everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flooded {
    /// It is for all.
    Broadcast,
    /// It is for a group.
    Multicast,
    /// Nobody knows where its destination is.
    Unknown,
}

/// What a bridge has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames to one port.
    pub forwarded: u64,
    /// Frames to all ports: broadcast, multicast, unknown destinations.
    pub flooded: [u64; 3],
    /// Frames to no port, in the order of [`NotForwarded::ALL`].
    pub not_forwarded: [u64; NotForwarded::ALL.len()],
    /// Stations learnt, those included that had aged and came back.
    pub learnt: u64,
    /// Stations that were heard of at another port than before.
    pub moved: u64,
    /// Stations that were found to have aged: when they came back, or when
    /// their rows were looked at.
    pub aged: u64,
    /// Frames of stations that were not learnt for want of room.
    pub not_learnt: u64,
    /// Frames of stations at another port than their static entry says. They
    /// are forwarded.
    pub static_elsewhere: u64,
    /// Signs of a loop.
    pub loop_signs: u64,
}

impl BridgeCounters {
    /// Frames that went nowhere for this reason.
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
