//! Serialisation at a piecewise linear rate, computed from its integral.

use super::RateModel;
use super::varying::NANOBITS;
use crate::models::prelude::*;

/// A rate of `rate` bit/s from `time` nanoseconds after the epoch on; 0 stops the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub time: u64,
    pub rate: u64,
}

/// Units per bit. Sent data is counted in half billionths of a bit (halves), because a linear
/// change between integer rates over whole nanoseconds sends a whole number of them.
const HALVES: u64 = 2 * NANOBITS;

/// A linear change from one rate to another.
///
/// Sent data is counted in parts of 1/`span` half. In its first `t` nanoseconds, the ramp sends 2
/// `from` t + (`to` - `from`) t² / `span` halves, a whole number of parts.
#[derive(Clone, Copy, Debug)]
struct LinearRamp {
    start: u64,
    /// Duration in nanoseconds; never 0.
    span: u64,
    from: u64,
    to: u64,
    /// Total data in parts.
    total: u128,
}

impl LinearRamp {
    /// Creates the ramp between two steps, if its parts do not overflow.
    fn new(from: Step, to: Step) -> Option<LinearRamp> {
        let span = to.time - from.time;
        let halves = u128::from(span) * u128::from(from.rate + to.rate);
        Some(LinearRamp {
            start: from.time,
            span,
            from: from.rate,
            to: to.rate,
            // The largest number in any computation.
            total: halves.checked_mul(u128::from(span))?,
        })
    }

    /// Returns the parts sent in the first `time` nanoseconds.
    #[inline]
    fn sent(&self, time: u64) -> u128 {
        // t (from (2 span - t) + to t)
        let rest = u128::from(self.from) * u128::from(2 * self.span - time);
        u128::from(time) * (rest + u128::from(self.to) * u128::from(time))
    }

    /// Returns the last whole nanosecond, at or after `after`, by which at most `sent` parts have
    /// been sent. `sent` is below the total and exceeds the parts sent at or shortly before `after`
    /// by `work` halves.
    #[inline]
    fn time(&self, sent: u128, after: u64, work: u64) -> u64 {
        let fits = |time: u64| self.sent(time) <= sent;
        // The guess is off by at most a nanosecond, except at rates close to zero.
        let guess = after.saturating_add(self.guess(after, work)).min(self.span);
        let (mut low, mut high, mut reach) = (after, self.span, 1u64);
        if fits(guess) {
            low = guess;
            while low + reach < high && fits(low + reach) {
                low += reach;
                reach *= 2;
            }
            high = high.min(low + reach);
        } else {
            high = guess;
            while high - low > reach && !fits(high - reach) {
                high -= reach;
                reach *= 2;
            }
            low = low.max(high.saturating_sub(reach));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the time from `after` on to send `work` halves: the root of the quadratic, in the
    /// form that avoids cancellation.
    #[inline]
    fn guess(&self, after: u64, work: u64) -> u64 {
        let slope = (self.to as f64 - self.from as f64) / self.span as f64;
        let rate = self.from as f64 + slope * after as f64;
        let work = work as f64;
        let square = (rate * rate + slope * work).max(0.0);
        (work / (rate + libm::sqrt(square))) as u64
    }
}

/// A rate model with a piecewise linear rate.
///
/// Departures are rounded down to nanoseconds, and the remainder is carried. Within a ramp, nothing
/// is rounded; at the end of a ramp, the remaining work of a frame is rounded by less than half a
/// billionth of a bit.
#[derive(Clone, Debug)]
pub struct Ramps {
    mean: Option<BitRate>,
    ramps: Vec<LinearRamp>,
    /// Rate after the last ramp, unless the ramps repeat.
    last: u64,
    period: Option<u64>,
    /// Halves sent per period.
    lap_halves: u128,
    epoch: u64,
    /// Index of the current ramp. An index equal to the number of ramps means the rate after the
    /// last.
    index: usize,
    /// Start of the current period, in nanoseconds after the epoch.
    lap: u64,
    /// Last departure, rounded down.
    at: u64,
    /// Data sent up to the exact departure: in parts since the ramp's start or, after the last
    /// ramp, in halves since `at`.
    sent: u128,
    /// Unsent halves of a frame that never departs.
    left: u128,
}

impl Ramps {
    /// Creates ramps between steps and, with a period, back to the first step at its end. The
    /// mean is in bit/s.
    ///
    /// # Errors
    /// If a ramp sends more than can be counted exactly.
    pub fn new(steps: &[Step], period: Option<Nanos>, mean: u64) -> Result<Ramps, String> {
        let mut ramps = Vec::with_capacity(steps.len());
        let back = period.map(|period| Step {
            time: period.as_nanos(),
            rate: steps[0].rate,
        });
        for (from, to) in steps.iter().zip(steps[1..].iter().chain(back.as_ref())) {
            let ramp = LinearRamp::new(*from, *to).ok_or_else(|| {
                let span = Nanos::from_nanos(to.time - from.time);
                format!(
                    "the ramp from {} to {} bit/s over {span} is too long to compute exactly; add \
                     an intermediate step",
                    from.rate, to.rate
                )
            })?;
            ramps.push(ramp);
        }
        let halves = |ramp: &LinearRamp| ramp.total / u128::from(ramp.span);
        Ok(Ramps {
            mean: BitRate::from_bits_per_sec(mean),
            lap_halves: ramps.iter().map(halves).sum(),
            ramps,
            last: steps[steps.len() - 1].rate,
            period: period.map(Nanos::as_nanos),
            epoch: 0,
            index: 0,
            lap: 0,
            at: 0,
            sent: 0,
            left: 0,
        })
    }

    /// Returns the halves that a saturated link sends from the epoch to `since`.
    fn halves_before(&self, since: u64) -> u128 {
        let (mut halves, mut inside) = (0, since);
        if let Some(period) = self.period {
            halves = u128::from(since / period) * self.lap_halves;
            inside = since % period;
        }
        for ramp in &self.ramps {
            let Some(time) = inside.checked_sub(ramp.start) else {
                return halves;
            };
            halves += ramp.sent(time.min(ramp.span)) / u128::from(ramp.span);
        }
        let ramps_end = self.ramps.last().map_or(0, |ramp| ramp.start + ramp.span);
        let after = inside.saturating_sub(ramps_end);
        halves + 2 * u128::from(self.last) * u128::from(after)
    }

    /// Sends work that extends beyond the current ramp or starts after the last one.
    fn cross(&mut self, mut work: u128) -> Nanos {
        // A whole period sends the same amount from any starting point.
        if let Some(period) = self.period
            && let Some(laps) = work.saturating_sub(1).checked_div(self.lap_halves)
        {
            let time = u64::try_from(laps.saturating_mul(u128::from(period)));
            self.lap = self.lap.saturating_add(time.unwrap_or(u64::MAX));
            work -= laps * self.lap_halves;
        }
        while let Some(ramp) = self.ramps.get(self.index) {
            let span = u128::from(ramp.span);
            let left = ramp.total - self.sent;
            let parts = work.checked_mul(span).filter(|parts| *parts <= left);
            if let Some(parts) = parts.filter(|_| left > 0) {
                self.sent += parts;
                let time = if parts < left {
                    // Search from the ramp's start, which has just been reached.
                    ramp.time(self.sent, 0, u64::try_from(work).unwrap_or(u64::MAX))
                } else {
                    ramp.span
                };
                self.at = self.lap.saturating_add(ramp.start + time);
                return Nanos::from_nanos(self.epoch.saturating_add(self.at));
            }
            work -= left.div_ceil(span);
            if self.next_ramp() == u64::MAX {
                self.left = work;
                return Nanos::MAX;
            }
        }
        if self.last == 0 {
            self.left = work;
            return Nanos::MAX;
        }
        let total = work + self.sent;
        let each = 2 * u128::from(self.last);
        let at = u128::from(self.at).saturating_add(total / each);
        self.at = u64::try_from(at).unwrap_or(u64::MAX);
        self.sent = total % each;
        Nanos::from_nanos(self.epoch.saturating_add(self.at))
    }

    /// Advances to the next ramp and returns its start, or `u64::MAX` at the end of representable
    /// time.
    fn next_ramp(&mut self) -> u64 {
        if self.lap == u64::MAX {
            return u64::MAX;
        }
        let end = self
            .ramps
            .get(self.index)
            .map(|ramp| ramp.start + ramp.span);
        self.at = self.lap.saturating_add(end.unwrap_or(0));
        self.index += 1;
        self.sent = 0;
        if let (Some(period), true) = (self.period, self.index == self.ramps.len()) {
            self.index = 0;
            self.lap = self.lap.saturating_add(period);
        }
        self.at
    }

    /// Idles until `since`, if later than the last departure.
    #[inline]
    fn idle_until(&mut self, since: u64) {
        if since <= self.at {
            return;
        }
        self.at = since;
        if let Some(ramp) = self.ramps.get(self.index) {
            let inside = since - self.lap - ramp.start;
            if inside < ramp.span {
                self.sent = ramp.sent(inside);
                return;
            }
        }
        self.seek(since);
    }

    /// Finds the ramp at `since`, while idle.
    fn seek(&mut self, since: u64) {
        if let Some(period) = self.period.filter(|period| since - self.lap >= *period) {
            self.lap = since - since % period;
            self.index = 0;
        }
        let inside = since - self.lap;
        let over = |ramp: &LinearRamp| ramp.start + ramp.span <= inside;
        self.index += self.ramps[self.index..].partition_point(over);
        self.sent = match self.ramps.get(self.index) {
            Some(ramp) => ramp.sent(inside - ramp.start),
            None => 0,
        };
    }
}

impl RateModel for Ramps {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    #[inline]
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        let since = from.as_nanos().saturating_sub(self.epoch);
        self.idle_until(since);
        let mut ready = since.max(self.at);
        loop {
            match self.ramps.get(self.index) {
                Some(ramp) if ramp.total == self.sent => {
                    ready = ready.max(self.next_ramp());
                }
                None if self.last == 0 => return Nanos::MAX,
                _ => break,
            }
            if ready == u64::MAX {
                return Nanos::MAX;
            }
        }
        Nanos::from_nanos(self.epoch.saturating_add(ready)).max(from)
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        self.idle_until(frame.at.as_nanos().saturating_sub(self.epoch));
        if let Some(ramp) = self.ramps.get(self.index)
            && let Some(work) = wire_bits.checked_mul(HALVES)
            && let Some(sent) = (u128::from(work) * u128::from(ramp.span)).checked_add(self.sent)
            && sent < ramp.total
        {
            let begin = self.lap + ramp.start;
            self.sent = sent;
            self.at = begin + ramp.time(sent, self.at - begin, work);
            return Nanos::from_nanos(self.epoch.saturating_add(self.at));
        }
        self.cross(u128::from(wire_bits) * u128::from(HALVES))
    }

    fn unsent(&self, at: Nanos) -> Option<u128> {
        let since = at.as_nanos().saturating_sub(self.epoch);
        let until = match self.ramps.get(self.index) {
            Some(ramp) => {
                self.halves_before(self.lap + ramp.start) + self.sent / u128::from(ramp.span)
            }
            None => self.halves_before(self.at) + self.sent,
        };
        let done = until.saturating_sub(self.halves_before(since));
        Some((done + self.left).div_ceil(2))
    }

    fn rewind(&mut self, at: Nanos) {
        self.at = at.as_nanos().saturating_sub(self.epoch);
        (self.index, self.lap, self.left) = (0, 0, 0);
        self.seek(self.at);
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, _stream: &mut Stream) -> Nanos {
        self.idle_until(frame.at.as_nanos().saturating_sub(self.epoch));
        self.cross(work * 2)
    }

    fn mean(&self) -> Option<BitRate> {
        self.mean
    }
}
