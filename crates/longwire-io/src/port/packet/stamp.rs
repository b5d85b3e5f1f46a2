//! Conversion of the kernel's stamps (wall clock) to arrivals (the run's clock).
//!
//! The difference between the clocks is constant: both clocks are slewed alike, and only setting
//! the clock (manually, by a leap second or by a time daemon's step) changes it. So it is measured
//! once, checked at intervals, and checked immediately after an implausible stamp. Frames stamped
//! before a step keep the old difference.

use longwire_engine::Nanos;
use nix::time::ClockId;

use crate::clock::{ClockReading, NARROW};

/// Interval between checks of the difference, in nanoseconds.
const CHECK_EVERY: u64 = 1_000_000;

fn read() -> ClockReading {
    ClockReading::new(ClockId::CLOCK_REALTIME)
}

/// Converts the kernel's stamps to arrivals.
#[derive(Debug)]
pub(super) struct StampScale {
    offset: i64,
    /// Half the width of the reading that gave `offset`.
    uncertainty: u64,
    /// The difference before the last step, while frames stamped before it may be queued.
    before_step: Option<i64>,
    checked: u64,
    last: u64,
    steps: u64,
}

impl StampScale {
    pub(super) fn new() -> StampScale {
        StampScale::start(read())
    }

    fn start(reading: ClockReading) -> StampScale {
        StampScale {
            offset: reading.offset(),
            uncertainty: reading.width() / 2,
            before_step: None,
            checked: reading.after,
            last: 0,
            steps: 0,
        }
    }

    /// Returns the number of detected steps of the wall clock.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Checks the difference if a check is due. Call before taking frames, with the time of the
    /// call.
    #[inline]
    pub(super) fn check(&mut self, now: Nanos) {
        if now.as_nanos().wrapping_sub(self.checked) >= CHECK_EVERY {
            self.measure(read());
        }
    }

    /// Records that no frame stamped before a step is left.
    #[inline]
    pub(super) fn drained(&mut self) {
        self.before_step = None;
    }

    /// Returns the arrival of a frame stamped `wall`, never before the previous arrival. It may be
    /// after the time of the call if the frame arrived after that time was read.
    #[inline]
    pub(super) fn arrival(&mut self, wall: u64, now: Nanos) -> Nanos {
        let latest = self.latest(now);
        let stamp = wall.wrapping_sub(self.offset.cast_unsigned());
        if self.before_step.is_none() && stamp >= self.last && stamp <= latest {
            self.last = stamp;
            return Nanos::from_nanos(stamp);
        }
        self.uncertain_arrival(wall, now, read)
    }

    /// Like [`StampScale::arrival`], for an implausible stamp or after a step.
    #[cold]
    fn uncertain_arrival(
        &mut self,
        wall: u64,
        now: Nanos,
        read: impl FnOnce() -> ClockReading,
    ) -> Nanos {
        if self.before_step.is_none() {
            // Stamps from two processors may differ by nanoseconds, which is not a step.
            if let Some(stamp) = self.plausible(wall, self.offset, now) {
                return self.raise(stamp);
            }
            self.measure(read());
        }
        let before_step = self.before_step;
        if let Some(stamp) = before_step.and_then(|offset| self.plausible(wall, offset, now)) {
            return self.raise(stamp);
        }
        // The first frame stamped after the step ends the uncertainty.
        self.before_step = None;
        let stamp = self.plausible(wall, self.offset, now);
        self.raise(stamp.unwrap_or(now.as_nanos()))
    }

    /// Returns the latest plausible arrival.
    #[inline]
    fn latest(&self, now: Nanos) -> u64 {
        // The caller may have read its clock long ago.
        now.as_nanos().max(self.checked).saturating_add(CHECK_EVERY)
    }

    /// Returns `wall - offset` if it is a plausible arrival.
    fn plausible(&self, wall: u64, offset: i64, now: Nanos) -> Option<u64> {
        let stamp = wall.wrapping_sub(offset.cast_unsigned());
        let slack = 2 * self.uncertainty + NARROW;
        (self.last.saturating_sub(slack)..=self.latest(now))
            .contains(&stamp)
            .then_some(stamp)
    }

    fn raise(&mut self, stamp: u64) -> Nanos {
        self.last = self.last.max(stamp);
        Nanos::from_nanos(self.last)
    }

    fn measure(&mut self, reading: ClockReading) {
        self.checked = reading.after;
        let uncertainty = reading.width() / 2;
        let moved = reading.offset().abs_diff(self.offset);
        if moved > uncertainty + self.uncertainty + NARROW {
            self.before_step = Some(self.offset);
            self.offset = reading.offset();
            self.uncertainty = uncertainty;
            self.steps += 1;
        } else if uncertainty < self.uncertainty {
            // The difference is the same, but measured more precisely.
            self.offset = reading.offset();
            self.uncertainty = uncertainty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic_now, read_clock};

    const DAY: u64 = 86_400_000_000_000;

    fn reading(monotonic: u64, difference: u64) -> ClockReading {
        ClockReading {
            before: monotonic - 20,
            other: monotonic + difference,
            after: monotonic + 20,
        }
    }

    fn at(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    #[test]
    fn a_stamp_becomes_an_arrival_and_is_raised_if_it_is_slightly_earlier_than_the_last() {
        let mut scale = StampScale::start(reading(1_000, DAY));
        assert_eq!(scale.arrival(DAY + 4_500, at(6_000)), at(4_500));
        assert_eq!(scale.arrival(DAY + 5_000, at(6_000)), at(5_000));
        let never = || panic!("no reason to read the clocks");
        let again = scale.uncertain_arrival(DAY + 4_950, at(6_000), never);
        assert_eq!((again, scale.steps()), (at(5_000), 0));
    }

    #[test]
    fn a_step_in_either_direction_moves_no_arrival() {
        const HOUR: i64 = 3_600_000_000_000;
        for step in [-HOUR, -5_000_000, 5_000_000, HOUR] {
            let after = DAY.wrapping_add_signed(step);
            let mut scale = StampScale::start(reading(1_000, DAY));
            let mut now = 10_000_000_000;
            assert_eq!(scale.arrival(DAY + now - 9_000, at(now)), at(now - 9_000));
            // This frame was stamped before the step and is read after it.
            now += 1_000_000;
            let stamp = DAY + now - 900;
            assert_eq!(scale.arrival(stamp, at(now)), at(now - 900));
            // This frame was stamped after the step.
            now += 1_000_000;
            let stamp = after + now - 500;
            let arrival = scale.uncertain_arrival(stamp, at(now), || reading(now, after));
            assert_eq!(arrival, at(now - 500), "step {step}");
            assert_eq!(scale.steps(), 1);
            now += 1_000_000;
            assert_eq!(scale.arrival(after + now - 500, at(now)), at(now - 500));
        }
    }

    #[test]
    fn frames_from_both_sides_of_a_step_keep_their_arrivals() {
        for step in [-50_000_000_i64, 50_000_000] {
            let after = DAY.wrapping_add_signed(step);
            let mut scale = StampScale::start(reading(1_000, DAY));
            let now = 20_000_000_000;
            scale.arrival(DAY + now - 9_000, at(now));
            scale.measure(reading(now, after));
            assert_eq!(scale.steps(), 1);
            assert_eq!(scale.arrival(DAY + now - 800, at(now)), at(now - 800));
            assert_eq!(scale.arrival(after + now - 400, at(now)), at(now - 400));
            assert_eq!(scale.arrival(after + now - 300, at(now)), at(now - 300));
        }
    }

    #[test]
    fn an_implausible_stamp_becomes_the_time_of_the_call() {
        let mut scale = StampScale::start(reading(1_000, DAY));
        scale.arrival(DAY + 5_000, at(6_000));
        for stamp in [0, u64::MAX, 17] {
            let arrival = scale.uncertain_arrival(stamp, at(7_000), || reading(7_000, DAY));
            assert_eq!(arrival, at(7_000));
        }
    }

    #[test]
    fn the_real_clocks_agree_with_themselves() {
        let mut scale = StampScale::new();
        let before = monotonic_now().as_nanos();
        let wall = read_clock(ClockId::CLOCK_REALTIME);
        let after = monotonic_now().as_nanos();
        let arrival = scale.arrival(wall, at(after)).as_nanos();
        let (first, last) = (before - scale.uncertainty, after + scale.uncertainty);
        assert!(
            (first..=last).contains(&arrival),
            "{first} {arrival} {last}"
        );
    }
}
