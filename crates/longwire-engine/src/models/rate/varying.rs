//! Exact serialisation at a rate that changes over time.

use super::{Rate, RateModel};
use crate::models::prelude::*;
use crate::trace::{Cursor, End, Series, Stretch};

/// Billionths per bit: 1 bit/s sends one billionth per nanosecond.
pub(super) const NANOBITS: u64 = 1_000_000_000;

/// Number of random stretches within one frame after which the mean rate is used instead.
const STRETCHES_MAX: u32 = 10_000;

/// A stretch of constant rate. Times are nanoseconds since the link's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateStretch {
    /// End; `u64::MAX` means never.
    pub end: u64,
    /// Rate in bit/s; 0 stops the link.
    pub rate: u64,
}

impl From<Stretch> for RateStretch {
    fn from(stretch: Stretch) -> RateStretch {
        RateStretch {
            end: stretch.end.as_nanos(),
            rate: stretch.value.unwrap_or(0),
        }
    }
}

/// A source of piecewise constant rates.
pub(super) trait RateSource: Clone + fmt::Debug + Send + Sync + 'static {
    /// Returns the stretch at `since` nanoseconds after the epoch. Times never decrease.
    fn stretch(&mut self, since: u64, stream: &mut Stream) -> RateStretch;

    /// Returns the period in nanoseconds, and the billionths of a bit sent per period, if the rate
    /// repeats forever.
    fn lap(&self) -> Option<(u64, u128)> {
        None
    }

    /// Returns a random rate's mean in bit/s, never 0. After [`STRETCHES_MAX`] stretches, the
    /// remainder of a frame is served at this rate.
    fn mean(&self) -> Option<u64> {
        None
    }

    /// Returns the stretch at an arbitrary time, if rates are a function of time.
    fn stretch_at(&self, _since: u64) -> Option<RateStretch> {
        None
    }
}

/// Rates of a series.
#[derive(Clone, Debug)]
pub(super) struct SeriesSource {
    series: Series,
    cursor: Cursor,
    end: End,
    lap: Option<(u64, u128)>,
}

impl SeriesSource {
    /// Creates a source; `end` is the behaviour after the series ends.
    pub fn new(series: Series, end: End) -> SeriesSource {
        let length = series.length();
        let repeats = end == End::Loop && length < Nanos::MAX;
        SeriesSource {
            lap: repeats.then(|| (length.as_nanos(), series.integral())),
            series,
            cursor: Cursor::default(),
            end,
        }
    }
}

impl RateSource for SeriesSource {
    fn stretch(&mut self, since: u64, _stream: &mut Stream) -> RateStretch {
        let since = Nanos::from_nanos(since);
        self.series.at(&mut self.cursor, since, self.end).into()
    }

    fn lap(&self) -> Option<(u64, u128)> {
        self.lap
    }

    fn stretch_at(&self, since: u64) -> Option<RateStretch> {
        let since = Nanos::from_nanos(since);
        let stretch = self.series.at(&mut self.cursor.clone(), since, self.end);
        Some(stretch.into())
    }
}

/// A rate model that follows a source.
///
/// Exact: bits are counted in billionths, and each nanosecond sends a whole number of them. The
/// last departure is at `at + carry / rate`; reported departures are rounded down, so errors do not
/// accumulate.
#[derive(Clone, Debug)]
struct Varying<S> {
    source: S,
    mean: Option<BitRate>,
    epoch: u64,
    /// Current stretch.
    stretch: RateStretch,
    /// Time of its lookup. All earlier time was used or had rate 0.
    found: u64,
    at: u64,
    carry: u64,
    /// Unsent work of a frame that does not depart within representable time.
    left: u128,
}

impl<S: RateSource> Varying<S> {
    /// Skips as many whole periods as possible and returns the remaining work, at least 1. A period
    /// sends the same amount from any starting point.
    fn pass_laps(&mut self, work: u128) -> u128 {
        let Some((length, sent)) = self.source.lap().filter(|(_, sent)| *sent < work) else {
            return work;
        };
        let laps = (work - 1).checked_div(sent).unwrap_or(u128::MAX);
        let time = laps.saturating_mul(u128::from(length));
        self.at = match u64::try_from(time) {
            Ok(time) => self.at.saturating_add(time),
            Err(_) => u64::MAX,
        };
        self.stretch.end = self.stretch.end.min(self.at);
        work - laps * sent
    }

    #[inline]
    fn find(&mut self, since: u64, stream: &mut Stream) {
        self.stretch = self.source.stretch(since, stream);
        self.found = since;
    }

    /// Serves work that extends beyond the stretch.
    #[cold]
    fn cross(&mut self, work: u128, stream: &mut Stream) -> Nanos {
        let mut work = self.pass_laps(work + u128::from(self.carry));
        let mut stretches = 0;
        loop {
            stretches += 1;
            if stretches > STRETCHES_MAX
                && let Some(mean) = self.source.mean()
            {
                let nanos = u64::try_from(work / u128::from(mean)).unwrap_or(u64::MAX);
                self.at = self.at.saturating_add(nanos);
                return Nanos::from_nanos(self.epoch.saturating_add(self.at));
            }
            while self.stretch.end <= self.at {
                if self.at == u64::MAX {
                    self.left = work;
                    return Nanos::MAX;
                }
                self.find(self.at, stream);
            }
            let rate = u128::from(self.stretch.rate);
            let room = rate * u128::from(self.stretch.end - self.at);
            if work <= room && rate > 0 {
                self.at += (work / rate) as u64;
                self.carry = (work % rate) as u64;
                return Nanos::from_nanos(self.epoch.saturating_add(self.at));
            }
            work -= room;
            self.at = self.stretch.end;
            self.carry = 0;
        }
    }
}

/// Creates a rate model from a source, its long-term mean in bit/s and its specification text.
pub(super) fn varying(source: impl RateSource, mean: u64, text: String) -> Rate {
    let model = Varying {
        source,
        mean: BitRate::from_bits_per_sec(mean),
        epoch: 0,
        stretch: RateStretch { end: 0, rate: 0 },
        found: 0,
        at: 0,
        carry: 0,
        left: 0,
    };
    Rate::Model(Described::new(text, Box::new(model)))
}

impl<S: RateSource> RateModel for Varying<S> {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    #[inline]
    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        let since = from.as_nanos().saturating_sub(self.epoch);
        let mut since = since.max(self.found);
        while since >= self.stretch.end || self.stretch.rate == 0 {
            if since < self.stretch.end {
                since = self.stretch.end;
            }
            if since == u64::MAX {
                return Nanos::MAX;
            }
            self.find(since, stream);
        }
        Nanos::from_nanos(self.epoch.saturating_add(since)).max(from)
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let from = frame.at.as_nanos().saturating_sub(self.epoch);
        let from = from.max(self.found);
        // At the exact departure time, the carried remainder has not been sent yet.
        if from > self.at {
            self.at = from;
            self.carry = 0;
        }
        let left = self.stretch.end.saturating_sub(self.at);
        if left > 0
            && self.stretch.rate > 0
            && let Some(work) = wire_bits.checked_mul(NANOBITS)
            && let Some(work) = work.checked_add(self.carry)
        {
            let nanos = work / self.stretch.rate;
            if nanos < left {
                self.at += nanos;
                self.carry = work % self.stretch.rate;
                return Nanos::from_nanos(self.epoch.saturating_add(self.at));
            }
        }
        self.cross(u128::from(wire_bits) * u128::from(NANOBITS), stream)
    }

    fn unsent(&self, at: Nanos) -> Option<u128> {
        let mut since = at.as_nanos().saturating_sub(self.epoch);
        let mut work = u128::from(self.carry) + self.left;
        self.source.stretch_at(since)?;
        if let Some((length, sent)) = self.source.lap() {
            let laps = self.at.saturating_sub(since) / length;
            work += u128::from(laps) * sent;
            since += laps * length;
        }
        while since < self.at {
            let RateStretch { end, rate } = self.source.stretch_at(since)?;
            let end = end.min(self.at);
            work += u128::from(rate) * u128::from(end - since);
            since = end;
        }
        Some(work)
    }

    fn rewind(&mut self, at: Nanos) {
        let since = at.as_nanos().saturating_sub(self.epoch);
        if let Some(stretch) = self.source.stretch_at(since) {
            (self.at, self.carry, self.left) = (since, 0, 0);
            (self.found, self.stretch) = (since, stretch);
        }
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, stream: &mut Stream) -> Nanos {
        let from = frame.at.as_nanos().saturating_sub(self.epoch);
        self.at = from.max(self.found);
        self.carry = 0;
        self.cross(work, stream)
    }

    fn mean(&self) -> Option<BitRate> {
        self.mean
    }
}

/// Returns the time to send bits plus a carry in billionths of a bit: whole nanoseconds
/// (saturating) and the remainder.
#[inline]
pub(super) fn divide(bits: u64, carry: u64, rate: BitRate) -> (u64, u64) {
    let rate = rate.bits_per_sec();
    // Frames of practical lengths take the 64-bit division; a frame of up to 2^32 cells of 2^17
    // bytes needs 128 bits.
    let work = bits.checked_mul(NANOBITS);
    if let Some(work) = work.and_then(|work| work.checked_add(carry)) {
        return (work / rate, work % rate);
    }
    let work = u128::from(bits) * u128::from(NANOBITS) + u128::from(carry);
    let rate = u128::from(rate);
    let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
    (nanos, (work % rate) as u64)
}
