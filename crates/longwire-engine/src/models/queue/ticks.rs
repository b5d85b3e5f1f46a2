//! A control law's periodic timer, evaluated lazily: ticks are processed when the queue is next
//! used.

use crate::models::prelude::*;

/// Periodic ticks; the first is one period after the link's epoch.
///
/// A tick precedes arrivals and departures at the same instant. It uses the queue state after the
/// previous event, so late processing changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    next: Nanos,
    period: Nanos,
}

impl Ticks {
    /// Creates ticks with this non-zero period, starting at time zero.
    pub fn new(period: Nanos) -> Ticks {
        let mut ticks = Ticks {
            next: Nanos::ZERO,
            period,
        };
        ticks.start(Nanos::ZERO);
        ticks
    }

    /// Sets the origin to `epoch`.
    pub fn start(&mut self, epoch: Nanos) {
        self.next = epoch.saturating_add(self.period);
    }

    /// Whether a tick is due at `now`.
    #[inline]
    pub fn due(&self, now: Nanos) -> bool {
        self.next <= now
    }

    /// Removes the next tick if it is due at `now` and returns its time.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<Nanos> {
        // The last representable time is never reached; ticks at that time would never end.
        let tick = Some(self.next).filter(|tick| *tick <= now && *tick < Nanos::MAX);
        if tick.is_some() {
            self.next = self.next.saturating_add(self.period);
        }
        tick
    }

    /// Skips all ticks due at `now`, which must have no effect, and returns the time of the last
    /// one.
    pub fn skip(&mut self, now: Nanos) -> Option<Nanos> {
        self.skip_some(self.count_due(now))
    }

    /// Skips `count` ticks and returns the time of the last one.
    pub fn skip_some(&mut self, count: u64) -> Option<Nanos> {
        let last = self.nth(count.checked_sub(1)?);
        self.next = last.saturating_add(self.period);
        Some(last)
    }

    /// Returns the time of the `nth` upcoming tick, from 0.
    pub fn nth(&self, nth: u64) -> Nanos {
        self.next.saturating_add(self.period.saturating_mul(nth))
    }

    /// Returns the number of ticks due at `now`.
    pub fn count_due(&self, now: Nanos) -> u64 {
        let overdue = now.as_nanos().checked_sub(self.next.as_nanos());
        overdue.map_or(0, |overdue| overdue / self.period.as_nanos() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    #[test]
    fn ticks_are_a_period_apart() {
        let mut ticks = Ticks::new(at(10));
        ticks.start(at(3));
        assert_eq!((ticks.take(at(12)), ticks.due(at(12))), (None, false));
        assert_eq!(ticks.count_due(at(33)), 3);
        assert_eq!(ticks.take(at(33)), Some(at(13)));
        assert_eq!(ticks.take(at(33)), Some(at(23)));
        assert_eq!(ticks.take(at(33)), Some(at(33)));
        assert_eq!(ticks.take(at(33)), None);
    }

    #[test]
    fn skipping_is_taking_all() {
        for now in 0..100 {
            let mut taken = Ticks::new(at(7));
            let mut skipped = taken;
            let mut last = None;
            while let Some(tick) = taken.take(at(now)) {
                last = Some(tick);
            }
            assert_eq!(skipped.skip(at(now)), last, "{now}");
            assert_eq!(skipped.next, taken.next, "{now}");
        }
    }

    #[test]
    fn the_end_of_the_clock_is_no_tick() {
        let mut ticks = Ticks::new(at(10));
        ticks.start(at(u64::MAX - 15));
        assert_eq!(ticks.take(Nanos::MAX), Some(at(u64::MAX - 5)));
        assert_eq!(ticks.take(Nanos::MAX), None);
    }
}
