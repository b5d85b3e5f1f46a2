//! The pace of a replay.

use longwire_units::{BitRate, PacketRate, Speed};

use crate::models::framing::Framing;

/// The pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The trace's timestamps, scaled by a speed.
    Trace(Speed),
    /// A saturated wire: each frame is sent when its predecessor's last bit has left.
    Bits {
        /// The wire's rate.
        rate: BitRate,
        /// Framing added to a frame's bytes.
        framing: Framing,
    },
    /// A fixed rate in frames/s, evenly spaced.
    Packets(PacketRate),
    /// As fast as the port accepts frames.
    TopSpeed,
}

impl Default for Pace {
    /// The original pace.
    fn default() -> Pace {
        Pace::Trace(Speed::UNCHANGED)
    }
}
