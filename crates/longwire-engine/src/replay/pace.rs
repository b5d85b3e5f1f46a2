//! What sets the pace of a replay.

use longwire_units::{BitRate, PacketRate, Speed};

use crate::models::framing::Framing;

/// What sets the pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The trace's own stamps, faster or slower.
    Trace(Speed),
    /// A wire that is never idle: each frame is sent when its predecessor's
    /// last bit has left.
    Bits {
        /// The wire's rate.
        rate: BitRate,
        /// What counts beside a frame's own bytes.
        framing: Framing,
    },
    /// So many frames a second, evenly.
    Packets(PacketRate),
    /// As fast as the port takes them.
    TopSpeed,
}

impl Default for Pace {
    /// As it was captured.
    fn default() -> Pace {
        Pace::Trace(Speed::UNCHANGED)
    }
}
