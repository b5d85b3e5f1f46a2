//! The pace of a replay.

use longwire_units::{BitRate, PacketRate, Speed};

use crate::models::framing::Framing;

/// The pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The trace's stamps, scaled by a speed.
    Trace(Speed),
    /// A wire that is never idle: each frame is sent when its predecessor's last bit
    /// has left.
    Bits {
        /// The wire's rate.
        rate: BitRate,
        /// Framing that counts in addition to a frame's bytes.
        framing: Framing,
    },
    /// A fixed number of frames a second, evenly spaced.
    Packets(PacketRate),
    /// As fast as the port accepts frames.
    TopSpeed,
}

impl Default for Pace {
    /// As it was captured.
    fn default() -> Pace {
        Pace::Trace(Speed::UNCHANGED)
    }
}
