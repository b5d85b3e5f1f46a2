//! Unit types and seeded random streams.
//!
//! ```
//! use longwire_units::random::Stream;
//! use longwire_units::{BitRate, Bytes, Nanos};
//!
//! let rate: BitRate = "10mbit".parse()?;
//! assert_eq!(rate.bytes_in(Nanos::from_millis(20)), Bytes(25_000));
//! assert_eq!(rate.to_string(), "10mbit");
//!
//! // The same seed draws the same numbers on every machine.
//! let mut stream = Stream::of_seed(7);
//! assert_eq!(stream.next_u64(), Stream::of_seed(7).next_u64());
//! # Ok::<(), longwire_units::UnitError>(())
//! ```
//!
//! Quantities are integers: a rate is never rounded to a time per byte, and a probability is an
//! integer ratio. All of them parse and print in the syntax of `tc`. The crate is `no_std`, reads
//! no clock and does no I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::num::NonZeroU64;

mod date;
pub mod decimal;
mod display;
pub mod fields;
pub mod glob;
pub mod lines;
mod pace;
mod parse;
pub mod random;
pub mod special;
pub mod words;

pub use date::{Date, calendar};
pub use pace::{PacketRate, Speed};

pub use parse::{UnitError, parse_count, parse_ratio, parse_real, parse_signed, with_unit};
pub use words::{count_of, grouped};

/// A time on the run's monotonic clock, or a duration, in nanoseconds.
///
/// [`Nanos::MAX`] means "never"; arithmetic saturates there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// Start of the clock, or a zero duration.
    pub const ZERO: Nanos = Nanos(0);
    /// Never.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Creates a time from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Nanos {
        Nanos(nanos)
    }

    /// Creates a time from microseconds, saturating.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    /// Creates a time from milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// Creates a time from seconds, saturating.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the time in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time in seconds, rounded to the nearest float.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time in microseconds, rounded to the nearest float.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the sum, saturating at "never".
    #[inline]
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// Returns the difference, saturating at zero.
    #[inline]
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// Returns the product, saturating at "never".
    pub const fn saturating_mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

/// A rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(NonZeroU64);

impl BitRate {
    /// 10 Tbit/s. At this rate, a full frame still takes more than a nanosecond, and its bits times
    /// 10^9 fit in 64 bits.
    pub const MAX: BitRate = match NonZeroU64::new(10_000_000_000_000) {
        Some(bits) => BitRate(bits),
        None => unreachable!(),
    };

    /// Creates a rate from bits per second; `None` outside 1..=[`BitRate::MAX`].
    pub const fn from_bits_per_sec(bits: u64) -> Option<BitRate> {
        match NonZeroU64::new(bits) {
            Some(nonzero) if bits <= BitRate::MAX.bits_per_sec() => Some(BitRate(nonzero)),
            _ => None,
        }
    }

    /// Returns the rate in bits per second.
    #[inline]
    pub const fn bits_per_sec(self) -> u64 {
        self.0.get()
    }

    /// Returns the bytes sent in `time`, rounded up, saturating.
    pub fn bytes_in(self, time: Nanos) -> Bytes {
        let bits = u128::from(self.bits_per_sec()) * u128::from(time.0);
        let bytes = bits.div_ceil(8 * 1_000_000_000);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Maximum setting: 1 TiB. Derived values stay within it, so that they can be printed and
    /// parsed.
    pub const SETTING_MAX: Bytes = Bytes(1 << 40);
}

/// A number of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(pub u64);

/// A probability as a multiple of 2^-64; probability 1 is stored separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probability {
    threshold: u64,
    certain: bool,
}

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability::below(0);
    /// Probability 1.
    pub const ONE: Probability = Probability {
        threshold: 0,
        certain: true,
    };

    const fn below(threshold: u64) -> Probability {
        let certain = false;
        Probability { threshold, certain }
    }

    /// Returns `numerator / denominator`, rounded down to a multiple of 2^-64. Returns `None` if it
    /// exceeds one or the denominator is zero.
    pub fn from_ratio(numerator: u64, denominator: u64) -> Option<Probability> {
        if denominator == 0 || numerator > denominator {
            return None;
        }
        if numerator == denominator {
            return Some(Probability::ONE);
        }
        let threshold = (u128::from(numerator) << 64) / u128::from(denominator);
        Some(Probability::below(threshold as u64))
    }

    /// Converts a float, clamped to 0..=1; NaN is zero.
    pub fn from_f64(value: f64) -> Probability {
        if value >= 1.0 {
            return Probability::ONE;
        }
        Probability::below((value * 18_446_744_073_709_551_616.0) as u64)
    }

    /// Returns the sum, the probability of either of two disjoint events; `None` if above one.
    pub fn checked_add(self, other: Probability) -> Option<Probability> {
        if let (Probability::ONE, rest) | (rest, Probability::ONE) = (self, other) {
            return (rest == Probability::ZERO).then_some(Probability::ONE);
        }
        match self.threshold.overflowing_add(other.threshold) {
            (threshold, false) => Some(Probability::below(threshold)),
            (0, true) => Some(Probability::ONE),
            _ => None,
        }
    }

    /// Returns the probability as a float with 53 bits, rounded down.
    pub fn as_f64(self) -> f64 {
        if self.certain {
            return 1.0;
        }
        self.threshold as f64 / 18_446_744_073_709_551_616.0
    }

    /// Whether an event of this probability occurs, given a uniform 64-bit `draw`.
    #[inline]
    pub fn accepts(self, draw: u64) -> bool {
        self.certain || draw < self.threshold
    }
}

/// A correlation, from -1 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correlation {
    /// `false` for zero.
    negative: bool,
    size: Probability,
}

impl Correlation {
    /// Uncorrelated.
    pub const ZERO: Correlation = Correlation::positive(Probability::ZERO);

    /// Full correlation: each value equals the previous one.
    pub const ONE: Correlation = Correlation::positive(Probability::ONE);

    const fn positive(size: Probability) -> Correlation {
        let negative = false;
        Correlation { negative, size }
    }

    /// Converts to a float with 53 bits.
    pub fn as_f64(self) -> f64 {
        if self.negative {
            -self.size.as_f64()
        } else {
            self.size.as_f64()
        }
    }
}
