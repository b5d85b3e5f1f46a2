//! Serialisation at one rate, exactly.

use longwire_units::{BitRate, Nanos};

use crate::models::framing::Framing;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The serialiser of one link.
///
/// Exact: the true instant at which the link falls idle is
/// `free_at + remainder / rate` nanoseconds, with `remainder < rate`.
/// Departures are that instant rounded down, and no rounding is ever carried
/// on. What would depart after the clock's end departs [`Nanos::MAX`], never.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Option<BitRate>,
    framing: Framing,
    free_at: Nanos,
    remainder: u64,
    /// The last length with its quotient and remainder by the rate: traffic
    /// repeats its lengths, and a division is the dearest step of `depart`.
    last: Time,
}

/// The time one frame takes: `nanos + remainder / rate`.
#[derive(Clone, Copy, Debug)]
struct Time {
    len: u32,
    nanos: u64,
    remainder: u64,
}

impl Serializer {
    /// A link at this rate; `None` is infinitely fast.
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

    /// Serialises one frame: when its last bit has left.
    ///
    /// Arrivals must not go back in time.
    #[inline]
    pub fn depart(&mut self, arrival: Nanos, len: u32) -> Nanos {
        let Some(rate) = self.rate else {
            return arrival;
        };
        if len != self.last.len {
            self.last = self.time(len, rate);
        }
        // The link is idle at `arrival` only if that lies after the exact
        // instant; at equality the carried remainder is still to be sent.
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

    /// Another rate and framing, for what is served from now on. What was
    /// served keeps its departure; of the exact instant behind it, the part of
    /// a nanosecond is carried on, in units of the new rate and rounded down:
    /// less than `1 / rate` nanoseconds are lost a change. At an infinite rate
    /// there is nothing to carry.
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

    /// The link is free at `at` and no sooner or later.
    pub(crate) fn set_free_at(&mut self, at: Nanos) {
        self.free_at = at;
        self.remainder = 0;
    }

    /// The rate; `None` is infinitely fast.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// What the wire adds to a frame.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// When the last bit of what was served has left.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    fn time(&self, len: u32, rate: BitRate) -> Time {
        let (bits, rate) = (self.framing.wire_bits(len), rate.bits_per_sec());
        // Every frame of a real wire takes the short division; at most 2^32
        // cells of 2^17 bytes need more than 64 bits.
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
