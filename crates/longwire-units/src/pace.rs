//! Rates of frames: packets a second, and the speed of a trace's time.

use super::Nanos;

/// Packets a second, in steps of a thousandth; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketRate(pub(super) u64);

/// The finest steps of a packet rate in one packet a second.
const MILLI: u64 = 1_000;

impl PacketRate {
    /// The highest rate: a packet a nanosecond.
    pub const MAX: PacketRate = PacketRate(1_000_000_000 * MILLI);

    /// From whole packets a second; `None` for zero and for more than the
    /// maximum.
    pub const fn from_packets_per_sec(packets: u64) -> Option<PacketRate> {
        PacketRate::from_packets_per_kilosec(packets.saturating_mul(MILLI))
    }

    /// From packets in a thousand seconds; `None` for zero and for more than
    /// the maximum.
    pub const fn from_packets_per_kilosec(packets: u64) -> Option<PacketRate> {
        if packets == 0 || packets > PacketRate::MAX.0 {
            return None;
        }
        Some(PacketRate(packets))
    }

    /// Packets in a thousand seconds: the value itself.
    pub const fn packets_per_kilosec(self) -> u64 {
        self.0
    }

    /// Packets a second, as far as a float is exact.
    pub fn packets_per_sec(self) -> f64 {
        self.0 as f64 / MILLI as f64
    }

    /// Returns when packet `number`, counted from 0, is due at an even pace from time
    /// zero: rounded down to a nanosecond, saturating.
    #[inline]
    pub fn due(self, number: u64) -> Nanos {
        const NANOS: u128 = 1_000_000_000 * MILLI as u128;
        let nanos = u128::from(number) * NANOS / u128::from(self.0);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// How fast a trace's own time passes, in steps of a billionth: at 2x, a
/// second of it passes in half a second. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(pub(super) u64);

impl Speed {
    /// As it was captured.
    pub const UNCHANGED: Speed = Speed(1_000_000_000);
    /// The greatest speed: a million times.
    pub const MAX: Speed = Speed(1_000_000 * Speed::UNCHANGED.0);

    /// Returns how long `span` of a trace takes: rounded down to a nanosecond,
    /// saturating.
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
