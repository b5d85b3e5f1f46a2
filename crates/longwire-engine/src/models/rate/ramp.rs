//! Serialisation at a rate that goes from one value to the next in straight
//! lines, by its integral.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::varying::NANOBITS;
use crate::units::Nanos;

/// From `time` nanoseconds after the epoch on, the rate is `rate` bit/s; 0
/// is none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub time: u64,
    pub rate: u64,
}

/// What is sent is counted in halves of a billionth of a bit: the integral
/// of a straight line between two whole rates over a whole number of
/// nanoseconds is a whole number of them.
const HALVES: u64 = 2 * NANOBITS;

/// A straight line from one rate to another.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    start: u64,
    /// Nanoseconds; never 0.
    span: u64,
    from: u64,
    to: u64,
}

impl Ramp {
    /// All that it sends, in halves.
    fn total(&self) -> u128 {
        u128::from(self.span) * u128::from(self.from + self.to)
    }

    /// What it sends in its first `time` nanoseconds, in halves, times its
    /// span: without a fraction.
    fn sent_by_span(&self, time: u64) -> u128 {
        let (time, span) = (u128::from(time), u128::from(self.span));
        let (from, to) = (u128::from(self.from), u128::from(self.to));
        // 2 from t + (to - from) t² / span, the terms with `from` together.
        from * time * (2 * span - time) + to * time * time
    }

    fn sent(&self, time: u64) -> u128 {
        self.sent_by_span(time) / u128::from(self.span)
    }

    /// The last whole nanosecond by which it has not sent more than `sent`
    /// halves, which is less than the total.
    fn time(&self, sent: u128) -> u64 {
        let wanted = sent * u128::from(self.span);
        let fits = |time: u64| self.sent_by_span(time) <= wanted;
        let (mut low, mut high) = (0, self.span);
        // The quadratic's root is off by a few nanoseconds at the most, but
        // where the rate is next to nothing.
        let guess = self.guess(sent).min(self.span);
        let mut reach = 1u64;
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
            match fits(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// The root of the quadratic in the form that does not cancel.
    fn guess(&self, sent: u128) -> u64 {
        let (from, to, span) = (self.from as f64, self.to as f64, self.span as f64);
        let sent = sent as f64;
        let square = from * from + (to - from) / span * sent;
        (sent / (from + libm::sqrt(square.max(0.0)))) as u64
    }
}

/// A serialiser at a rate of straight lines.
///
/// Departures are rounded down to whole nanoseconds, and what a frame leaves
/// of the nanosecond is carried on in halves of a billionth of a bit. A frame
/// that begins on an idle link, in the middle of a line, is rounded by less
/// than one of them; nothing else is rounded.
#[derive(Debug)]
pub struct Ramps {
    ramps: Vec<Ramp>,
    /// The rate after the last line, if they do not begin again.
    last: u64,
    period: Option<u64>,
    epoch: u64,
    /// The line in force, and when its lap began; one more than there are is
    /// the rate after the last.
    index: usize,
    lap: u64,
    /// When the last departure was, rounded down, and what the line in force
    /// had sent by its true instant.
    at: u64,
    sent: u128,
}

impl Ramps {
    /// Lines from step to step, and back to the first at the end of a
    /// period.
    ///
    /// # Errors
    /// If a line sends more than can be counted exactly.
    pub fn new(steps: &[Step], period: Option<Nanos>) -> Result<Ramps, String> {
        let mut ramps = Vec::with_capacity(steps.len());
        let back = period.map(|period| Step {
            time: period.as_nanos(),
            rate: steps[0].rate,
        });
        for (from, to) in steps.iter().zip(steps[1..].iter().chain(back.as_ref())) {
            let ramp = Ramp {
                start: from.time,
                span: to.time - from.time,
                from: from.rate,
                to: to.rate,
            };
            // Its integral times its span is at most span² (from + to).
            if ramp.total().checked_mul(u128::from(ramp.span)).is_none() {
                let span = Nanos::from_nanos(ramp.span);
                return Err(format!(
                    "the line from {} to {} bit/s over {span} is too long to be exact; put a step \
                     in its middle",
                    ramp.from, ramp.to
                ));
            }
            ramps.push(ramp);
        }
        Ok(Ramps {
            ramps,
            last: steps[steps.len() - 1].rate,
            period: period.map(Nanos::as_nanos),
            epoch: 0,
            index: 0,
            lap: 0,
            at: 0,
            sent: 0,
        })
    }

    /// Times count from `epoch`.
    pub fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    /// The earliest instant, at `from` or after it, at which the link does
    /// not stand still.
    pub fn ready(&mut self, from: Nanos) -> Nanos {
        let since = from.as_nanos().saturating_sub(self.epoch);
        self.idle_until(since);
        let mut ready = since.max(self.at);
        loop {
            match self.ramps.get(self.index) {
                Some(ramp) if ramp.total() == self.sent => {
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

    /// When the last of `bits` has left that are served from `from` on.
    pub fn serve(&mut self, from: Nanos, bits: u64) -> Nanos {
        self.idle_until(from.as_nanos().saturating_sub(self.epoch));
        let mut work = u128::from(bits) * u128::from(HALVES);
        while let Some(ramp) = self.ramps.get(self.index) {
            let left = ramp.total() - self.sent;
            if work <= left && left > 0 {
                self.sent += work;
                let time = match work < left {
                    true => ramp.time(self.sent),
                    false => ramp.span,
                };
                self.at = self.lap.saturating_add(ramp.start + time);
                return Nanos::from_nanos(self.epoch.saturating_add(self.at));
            }
            work -= left;
            if self.next_ramp() == u64::MAX {
                return Nanos::MAX;
            }
        }
        if self.last == 0 {
            return Nanos::MAX;
        }
        self.sent += work;
        let time = self.sent / (2 * u128::from(self.last));
        let at = u128::from(self.last_start()) + time;
        self.at = u64::try_from(at).unwrap_or(u64::MAX);
        Nanos::from_nanos(self.epoch.saturating_add(self.at))
    }

    /// When the rate after the last line begins.
    fn last_start(&self) -> u64 {
        self.ramps.last().map_or(0, |ramp| ramp.start + ramp.span)
    }

    /// Goes to the next line, at its beginning: when that is, or `u64::MAX`
    /// at the end of the clock.
    fn next_ramp(&mut self) -> u64 {
        self.index += 1;
        self.sent = 0;
        if let (Some(period), true) = (self.period, self.index == self.ramps.len()) {
            self.index = 0;
            self.lap = self.lap.saturating_add(period);
        }
        let start = self.ramps.get(self.index).map(|ramp| ramp.start);
        self.at = self
            .lap
            .saturating_add(start.unwrap_or_else(|| self.last_start()));
        self.at
    }

    /// Nothing is sent until `since`, if that is after the last departure.
    fn idle_until(&mut self, since: u64) {
        if since <= self.at {
            return;
        }
        self.at = since;
        if let Some(period) = self.period {
            let lap = since - since % period;
            if lap != self.lap {
                self.lap = lap;
                self.index = 0;
            }
        }
        let inside = since - self.lap;
        let ramp = self.ramps.get(self.index);
        if ramp.is_none_or(|ramp| inside - ramp.start >= ramp.span) {
            let begun = |ramp: &Ramp| ramp.start + ramp.span <= inside;
            self.index += self.ramps[self.index..].partition_point(begun);
        }
        self.sent = match self.ramps.get(self.index) {
            Some(ramp) => ramp.sent(inside - ramp.start),
            None => 2 * u128::from(self.last) * u128::from(inside - self.last_start()),
        };
    }
}
