//! Serialisation at one rate, exactly.

use longwire_units::{BitRate, Nanos};

use crate::models::framing::Framing;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The serialiser of one link.
///
/// Exact: the true instant at which the link becomes idle is `free_at + remainder /
/// rate` nanoseconds, with `remainder < rate`. Departures are that instant rounded
/// down, and no rounding error is carried over. A departure after the clock's end is
/// [`Nanos::MAX`], never.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Option<BitRate>,
    framing: Framing,
    free_at: Nanos,
    remainder: u64,
    /// The last length with its quotient and remainder by the rate: traffic repeats its
    /// lengths, and a division is the most expensive step of `depart`.
    last: Time,
}

/// The time of one frame: `nanos + remainder / rate`.
#[derive(Clone, Copy, Debug)]
struct Time {
    len: u32,
    nanos: u64,
    remainder: u64,
}

impl Serializer {
    /// Creates a link at this rate; `None` is infinitely fast.
    pub fn new(rate: Option<BitRate>, framing: Framing) -> Serializer {
        let mut serializer = Serializer {
            rate,
            framing,
            free_at: Nanos::ZERO,
            remainder: 0,
            last: Time {
                len: 0,
                nanos: 0,
                remainder: 0,
            },
        };
        if let Some(rate) = rate {
            serializer.last = serializer.time(0, rate);
        }
        serializer
    }

    /// Serialises one frame; returns when its last bit has left.
    ///
    /// Arrivals must not decrease.
    #[inline]
    pub fn depart(&mut self, arrival: Nanos, len: u32) -> Nanos {
        let Some(rate) = self.rate else {
            return arrival;
        };
        if len != self.last.len {
            self.last = self.time(len, rate);
        }
        // The link is idle at `arrival` only if that lies after the exact instant; at
        // equality the carried remainder is still to be sent.
        if arrival > self.free_at {
            self.free_at = arrival;
            self.remainder = 0;
        }
        let mut nanos = self.last.nanos;
        let mut remainder = self.remainder + self.last.remainder;
        if remainder >= rate.bits_per_sec() {
            remainder -= rate.bits_per_sec();
            nanos = nanos.saturating_add(1);
        }
        self.remainder = remainder;
        self.free_at = self.free_at.saturating_add(Nanos::from_nanos(nanos));
        self.free_at
    }

    /// Changes rate and framing for later frames. Earlier frames keep their departures.
    /// The fraction of a nanosecond of the exact instant is carried over, in units of
    /// the new rate and rounded down: less than `1 / rate` nanoseconds are lost a
    /// change. At an infinite rate there is nothing to carry.
    pub(crate) fn change(&mut self, rate: Option<BitRate>, framing: Framing) {
        self.remainder = match (self.rate, rate) {
            (Some(old), Some(new)) => {
                let scaled = u128::from(self.remainder) * u128::from(new.bits_per_sec());
                // Below the new rate, as the remainder was below the old one.
                (scaled / u128::from(old.bits_per_sec())) as u64
            }
            _ => 0,
        };
        self.rate = rate;
        self.framing = framing;
        if let Some(rate) = rate {
            self.last = self.time(self.last.len, rate);
        }
    }

    /// Sets the time at which the link is free.
    pub(crate) fn set_free_at(&mut self, at: Nanos) {
        self.free_at = at;
        self.remainder = 0;
    }

    /// Returns the rate; `None` is infinitely fast.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// Returns the framing.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns when the last bit of all served frames has left.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    fn time(&self, len: u32, rate: BitRate) -> Time {
        let (bits, rate) = (self.framing.wire_bits(len), rate.bits_per_sec());
        // Every frame of a real wire takes the short division; at most 2^32 cells of
        // 2^17 bytes need more than 64 bits.
        if let Some(scaled) = bits.checked_mul(NANOS_PER_SEC) {
            return Time {
                len,
                nanos: scaled / rate,
                remainder: scaled % rate,
            };
        }
        let scaled = u128::from(bits) * u128::from(NANOS_PER_SEC);
        Time {
            len,
            // Beyond the clock's end: the frame never departs.
            nanos: u64::try_from(scaled / u128::from(rate)).unwrap_or(u64::MAX),
            remainder: (scaled % u128::from(rate)) as u64,
        }
    }
}
