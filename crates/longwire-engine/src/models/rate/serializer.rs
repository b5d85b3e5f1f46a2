//! Exact serialisation at a fixed rate.

use super::varying::{NANOBITS, divide};
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
    backlog: Backlog,
    /// Quotient and remainder for the last length: frame lengths repeat, and the division is the
    /// most expensive step in `depart`.
    last: FrameTime,
}

/// The time at which a serialiser becomes idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    pub free_at: Nanos,
    remainder: u64,
}

/// A fixed rate that divides by multiplication with its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastRate {
    rate: BitRate,
    /// In units of 2^-64, rounded down.
    reciprocal: u64,
}

impl FastRate {
    pub fn new(rate: BitRate) -> FastRate {
        FastRate {
            rate,
            reciprocal: u64::MAX / rate.bits_per_sec(),
        }
    }

    /// Returns the rate.
    pub fn rate(self) -> BitRate {
        self.rate
    }

    /// Returns quotient and remainder of `work / rate`.
    #[inline(always)]
    fn divide(self, work: u64) -> (u64, u64) {
        let rate = self.rate.bits_per_sec();
        // Exact or too small by 1: rounding the reciprocal subtracts less than `work / 2^64`.
        let product = u128::from(work) * u128::from(self.reciprocal);
        let quotient = (product >> 64) as u64;
        let remainder = work - quotient * rate;
        let is_short = remainder >= rate;
        let missing = if is_short { rate } else { 0 };
        (quotient + u64::from(is_short), remainder - missing)
    }
}

/// Serialisation time of one frame: `nanos + remainder / rate`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTime {
    pub nanos: u64,
    remainder: u64,
    pub len: u32,
}

impl FrameTime {
    /// Nothing cached.
    pub const NONE: FrameTime = FrameTime {
        nanos: 0,
        remainder: 0,
        len: 0,
    };
}

impl Backlog {
    /// No work.
    pub const IDLE: Backlog = Backlog {
        free_at: Nanos::ZERO,
        remainder: 0,
    };

    /// Adds `bits` and returns their departure. Equals [`Backlog::add`]. `None`, without effect, if
    /// they take less than 1 ns.
    #[inline(always)]
    pub fn add_bits(&mut self, arrival: Nanos, bits: u64, rate: FastRate) -> Option<Nanos> {
        // If `arrival` equals `free_at`, the remainder is still being sent.
        let carry = if arrival > self.free_at {
            0
        } else {
            self.remainder
        };
        let (nanos, remainder) = if bits <= u64::from(u32::MAX) {
            let work = bits * NANOBITS;
            if work < rate.rate.bits_per_sec() {
                return None;
            }
            rate.divide(work + carry)
        } else {
            divide(bits, carry, rate.rate)
        };
        let begin = self.free_at.max(arrival);
        self.free_at = begin.saturating_add(Nanos::from_nanos(nanos));
        self.remainder = remainder;
        Some(self.free_at)
    }

    /// Adds a frame and returns its departure.
    #[inline(always)]
    pub fn add(&mut self, arrival: Nanos, frame: &FrameTime, rate: BitRate) -> Nanos {
        // The link is idle only after the exact instant: if `arrival` equals `free_at`, the carried
        // remainder is still being sent.
        if arrival > self.free_at {
            self.free_at = arrival;
            self.remainder = 0;
        }
        let mut nanos = frame.nanos;
        let mut remainder = self.remainder + frame.remainder;
        if remainder >= rate.bits_per_sec() {
            remainder -= rate.bits_per_sec();
            nanos = nanos.saturating_add(1);
        }
        self.remainder = remainder;
        self.free_at = self.free_at.saturating_add(Nanos::from_nanos(nanos));
        self.free_at
    }
}

impl Serializer {
    /// Creates a serialiser; without a rate, it is infinitely fast.
    pub fn new(rate: Option<BitRate>, framing: Framing) -> Serializer {
        let mut serializer = Serializer {
            rate,
            framing,
            backlog: Backlog::IDLE,
            last: FrameTime::NONE,
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
        self.backlog.add(arrival, &self.last, rate)
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
        let Backlog { free_at, remainder } = self.backlog;
        let left = free_at.saturating_sub(at).as_nanos();
        let work = u128::from(left) * u128::from(rate.bits_per_sec()) + u128::from(remainder);
        (free_at < Nanos::MAX).then_some(work)
    }

    /// Sets the backlog at `at`, in billionths of a bit, and returns the time at which it is sent.
    pub(crate) fn resume(&mut self, at: Nanos, work: u128) -> Nanos {
        self.backlog = Backlog {
            free_at: at,
            remainder: 0,
        };
        if let Some(rate) = self.rate.map(|rate| u128::from(rate.bits_per_sec())) {
            let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
            self.backlog = Backlog {
                free_at: at.saturating_add(Nanos::from_nanos(nanos)),
                remainder: (work % rate) as u64,
            };
        }
        self.backlog.free_at
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
        self.backlog.free_at
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(crate) fn set_backlog(&mut self, backlog: Backlog) {
        self.backlog = backlog;
    }

    /// Returns the serialisation time of a frame of `len` bytes.
    pub(crate) fn time(&self, len: u32, rate: BitRate) -> FrameTime {
        let (nanos, remainder) = divide(self.framing.wire_bits(len), 0, rate);
        FrameTime {
            nanos,
            remainder,
            len,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of all magnitudes, and the edges between them.
    fn numbers() -> impl Strategy<Value = u64> {
        let near_powers = (0u32..64, -2i64..3)
            .prop_map(|(power, offset)| (1u64 << power).wrapping_add_signed(offset));
        let any_bits = (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift);
        prop_oneof![near_powers, any_bits]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_reciprocal_divides_exactly(work in numbers(), rate in numbers(), times in numbers()) {
            let rate = rate % BitRate::MAX.bits_per_sec() + 1;
            // Also products of the rate and their neighbours.
            let product = rate.wrapping_mul(times);
            for work in [work, product, product.wrapping_sub(1), product.wrapping_add(1)] {
                let bit_rate = BitRate::from_bits_per_sec(rate).expect("in range");
                let divided = FastRate::new(bit_rate).divide(work);
                prop_assert_eq!(divided, (work / rate, work % rate));
            }
        }
    }
}
