//! Exact serialisation at a fixed rate.

use super::varying::divide;
use crate::models::framing::Framing;
use crate::models::prelude::*;

/// One link's serialiser.
///
/// Exact: the link becomes idle at `free_at + remainder / rate` nanoseconds, with
/// `remainder < rate`. Departures are that instant rounded down, so errors do not accumulate. A
/// departure beyond representable time is [`Nanos::MAX`], which means never.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Option<BitRate>,
    framing: Framing,
    free_at: Nanos,
    remainder: u64,
    /// Quotient and remainder for the last length: frame lengths repeat, and the division is the
    /// most expensive step in `depart`.
    last: Time,
}

/// Serialisation time of one frame: `nanos + remainder / rate`.
#[derive(Clone, Copy, Debug)]
struct Time {
    len: u32,
    nanos: u64,
    remainder: u64,
}

impl Serializer {
    /// Creates a serialiser; without a rate, it is infinitely fast.
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

    /// Serialises one frame and returns its departure.
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
        // The link is idle only after the exact instant: if `arrival` equals `free_at`, the carried
        // remainder is still being sent.
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

    /// Sets the framing for later frames.
    pub(crate) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
        if let Some(rate) = self.rate {
            self.last = self.time(self.last.len, rate);
        }
    }

    /// Returns the exact unsent work at `at`, in billionths of a bit; `None` if it never completes.
    pub(crate) fn unsent(&self, at: Nanos) -> Option<u128> {
        let Some(rate) = self.rate else {
            return Some(0);
        };
        let left = self.free_at.saturating_sub(at).as_nanos();
        let work = u128::from(left) * u128::from(rate.bits_per_sec()) + u128::from(self.remainder);
        (self.free_at < Nanos::MAX).then_some(work)
    }

    /// Sets the backlog at `at`, in billionths of a bit, and returns the time at which it is sent.
    pub(crate) fn resume(&mut self, at: Nanos, work: u128) -> Nanos {
        (self.free_at, self.remainder) = (at, 0);
        if let Some(rate) = self.rate.map(|rate| u128::from(rate.bits_per_sec())) {
            let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
            self.free_at = at.saturating_add(Nanos::from_nanos(nanos));
            self.remainder = (work % rate) as u64;
        }
        self.free_at
    }

    /// Returns the rate; `None` means infinite.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// Returns the framing.
    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the time at which the last bit of all served frames has departed.
    #[inline]
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    fn time(&self, len: u32, rate: BitRate) -> Time {
        let (nanos, remainder) = divide(self.framing.wire_bits(len), 0, rate);
        Time {
            len,
            nanos,
            remainder,
        }
    }
}
