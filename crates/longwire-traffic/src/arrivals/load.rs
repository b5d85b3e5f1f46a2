//! Offered load, and an exact clock for evenly spaced arrivals.

use std::fmt;
use std::str::FromStr;

use longwire_engine::models::framing::Framing;
use longwire_units::{BitRate, Nanos, PacketRate, UnitError};

use crate::sizes::SizeModel;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Work of one packet, in units of [`PacketRate`].
const MILLIPACKETS: u64 = 1_000;

/// A mean rate, in bits or frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRate {
    /// Bits per second, with this framing.
    Bits(BitRate, Framing),
    /// Frames per second.
    Packets(PacketRate),
}

impl LoadRate {
    /// Returns a frame's work in units of [`LoadRate::per_sec`]: bits, or 0.001 packets. `len` is
    /// in bytes.
    #[inline]
    pub fn work(&self, len: u32) -> u64 {
        match self {
            LoadRate::Bits(_, framing) => framing.wire_bits(len),
            LoadRate::Packets(_) => MILLIPACKETS,
        }
    }

    /// Returns the work per second.
    pub fn per_sec(&self) -> u64 {
        match self {
            LoadRate::Bits(rate, _) => rate.bits_per_sec(),
            LoadRate::Packets(rate) => rate.packets_per_kilosec(),
        }
    }

    /// Returns the same rate with different framing; a no-op for packet rates.
    #[must_use]
    pub fn framed(self, framing: Framing) -> LoadRate {
        match self {
            LoadRate::Bits(rate, _) => LoadRate::Bits(rate, framing),
            packets @ LoadRate::Packets(_) => packets,
        }
    }
}

impl FromStr for LoadRate {
    type Err = UnitError;

    /// Parses `10gbit` (without framing) or `1mpps`.
    fn from_str(text: &str) -> Result<LoadRate, UnitError> {
        if text.to_ascii_lowercase().ends_with("pps") {
            return text.parse().map(LoadRate::Packets);
        }
        match text.parse() {
            Ok(rate) => Ok(LoadRate::Bits(rate, Framing::NONE)),
            Err(UnitError::UnknownUnit { unit, .. }) => Err(UnitError::UnknownUnit {
                text: text.to_string(),
                unit,
                known: "rates are in bit, kbit, mbit or gbit per second, or in pps, kpps or mpps",
            }),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for LoadRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadRate::Bits(rate, _) => rate.fmt(f),
            LoadRate::Packets(rate) => rate.fmt(f),
        }
    }
}

/// A mean rate, with a frame's mean work.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Mean rate.
    pub rate: LoadRate,
    /// Mean of [`LoadRate::work`].
    mean_work: f64,
}

impl Load {
    /// Creates a load from a rate and a size distribution.
    pub fn new(rate: LoadRate, sizes: &dyn SizeModel) -> Load {
        let mut mean_work = 0.0;
        sizes.each(&mut |len, share| mean_work += rate.work(len) as f64 * share);
        Load { rate, mean_work }
    }

    /// Returns the mean gap between frames in nanoseconds.
    pub fn mean_gap(&self) -> f64 {
        self.mean_work * NANOS_PER_SEC as f64 / self.rate.per_sec() as f64
    }

    /// Returns the mean rate in frames/s.
    pub fn packets_per_sec(&self) -> f64 {
        self.rate.per_sec() as f64 / self.mean_work
    }
}

/// Evenly spaced arrivals: a frame is due when the work of the previous frames is done at the mean
/// rate. Times are rounded down to nanoseconds, and the remainder is carried over.
#[derive(Clone, Debug)]
pub struct EvenClock {
    rate: LoadRate,
    /// Due time; the exact value is `at + remainder / rate`.
    at: u64,
    remainder: u64,
    /// Most recent work with its quotient and remainder, which saves divisions for repeated
    /// lengths.
    last: (u64, u64, u64),
}

impl EvenClock {
    /// Creates a clock at time zero.
    pub fn new(rate: LoadRate) -> EvenClock {
        EvenClock {
            rate,
            at: 0,
            remainder: 0,
            last: (0, 0, 0),
        }
    }

    /// Returns the due time of the next frame; [`Nanos::MAX`] beyond representable time.
    #[inline]
    pub fn due(&mut self, len: u32) -> Nanos {
        let due = Nanos::from_nanos(self.at);
        let work = self.rate.work(len);
        if work != self.last.0 {
            self.divide(work);
        }
        let (_, nanos, remainder) = self.last;
        self.at = self.at.saturating_add(nanos);
        self.remainder += remainder;
        if self.remainder >= self.rate.per_sec() {
            self.remainder -= self.rate.per_sec();
            self.at = self.at.saturating_add(1);
        }
        due
    }

    #[cold]
    fn divide(&mut self, work: u64) {
        let per_sec = u128::from(self.rate.per_sec());
        let scaled = u128::from(work) * u128::from(NANOS_PER_SEC);
        let nanos = u64::try_from(scaled / per_sec).unwrap_or(u64::MAX);
        self.last = (work, nanos, (scaled % per_sec) as u64);
    }
}
