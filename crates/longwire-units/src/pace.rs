//! Packet rates and playback speeds of traces.

use super::Nanos;

/// A packet rate in units of 0.001 packets/s; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketRate(pub(super) u64);

/// Number of units in one packet/s.
const MILLI: u64 = 1_000;

impl PacketRate {
    /// One packet per nanosecond.
    pub const MAX: PacketRate = PacketRate(1_000_000_000 * MILLI);

    /// Creates a rate from packets per second; `None` outside 1..=[`PacketRate::MAX`].
    pub const fn from_packets_per_sec(packets: u64) -> Option<PacketRate> {
        PacketRate::from_packets_per_kilosec(packets.saturating_mul(MILLI))
    }

    /// Creates a rate from packets per 1000 s; `None` outside 1..=[`PacketRate::MAX`].
    pub const fn from_packets_per_kilosec(packets: u64) -> Option<PacketRate> {
        if packets == 0 || packets > PacketRate::MAX.0 {
            return None;
        }
        Some(PacketRate(packets))
    }

    /// Returns packets per 1000 s, the stored unit.
    pub const fn packets_per_kilosec(self) -> u64 {
        self.0
    }

    /// Returns packets per second, rounded to the nearest float.
    pub fn packets_per_sec(self) -> f64 {
        self.0 as f64 / MILLI as f64
    }

    /// Returns the due time of packet `number` (from 0) if packets are evenly spaced from time
    /// zero. Rounds down to nanoseconds and saturates.
    #[inline]
    pub fn due(self, number: u64) -> Nanos {
        const NANOS: u128 = 1_000_000_000 * MILLI as u128;
        let nanos = u128::from(number) * NANOS / u128::from(self.0);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Playback speed of a trace, in units of 10^-9; never zero. At 2x, one second of the trace takes
/// half a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(pub(super) u64);

impl Speed {
    /// Real time.
    pub const UNCHANGED: Speed = Speed(1_000_000_000);
    /// A million times real time.
    pub const MAX: Speed = Speed(1_000_000 * Speed::UNCHANGED.0);

    /// Returns the time that `span` of a trace takes, rounded down to nanoseconds, saturating.
    #[inline]
    pub fn pass(self, span: Nanos) -> Nanos {
        if self == Speed::UNCHANGED {
            return span;
        }
        let scaled = u128::from(span.0) * u128::from(Speed::UNCHANGED.0);
        let nanos = scaled / u128::from(self.0);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Default for Speed {
    fn default() -> Speed {
        Speed::UNCHANGED
    }
}
