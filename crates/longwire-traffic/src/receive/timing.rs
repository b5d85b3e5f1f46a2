//! Arrivals against a schedule.

use longwire_engine::Nanos;

use super::drift::DriftFit;
use super::report::Timing;
use super::spread::Distribution;

/// The account of frames whose times are known in advance.
#[derive(Clone, Debug)]
pub(super) struct Against {
    gap_error: Distribution,
    offset: Distribution,
    drift: DriftFit,
    /// The first frame that came: when it was due, and its offset.
    origin: Option<(u64, i64)>,
    last: Option<Last>,
}

/// The frame that came last.
#[derive(Clone, Copy, Debug)]
struct Last {
    due: u64,
    arrival: u64,
}

impl Against {
    pub(super) fn new() -> Against {
        Against {
            gap_error: Distribution::new(),
            offset: Distribution::new(),
            drift: DriftFit::new(),
            origin: None,
            last: None,
        }
    }

    /// A frame came at `arrival` that was due at `due`, on any two scales.
    /// With `next`, it follows the frame before it on both sides, and the gap
    /// between them counts. Returns the gap's error with its sign.
    #[inline]
    pub(super) fn came(&mut self, due: Nanos, arrival: Nanos, next: bool) -> Option<i64> {
        let (due, arrival) = (due.as_nanos(), arrival.as_nanos());
        let offset = arrival.wrapping_sub(due).cast_signed();
        let (first_due, first_offset) = *self.origin.get_or_insert((due, offset));
        let offset = offset.wrapping_sub(first_offset);
        self.offset.record(offset);
        // A frame due before the first to come is not on the fit's scale.
        if let Some(since) = due.checked_sub(first_due) {
            self.drift.record(since, offset);
        }
        let last = self.last.replace(Last { due, arrival });
        let last = last.filter(|_| next)?;
        let gap = arrival.wrapping_sub(last.arrival).cast_signed();
        let error = gap.wrapping_sub(due.wrapping_sub(last.due).cast_signed());
        self.gap_error.record(error.wrapping_abs());
        Some(error)
    }

    pub(super) fn report(&self) -> Timing {
        Timing {
            gap_error_us: self.gap_error.spread(1e3),
            offset_us: self.offset.spread(1e3),
            drift: self.drift.fit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_judged_by_the_schedules_gaps() {
        let mut against = Against::new();
        // Due and arrived, in microseconds; the scales are far apart.
        let frames = [(0, 9_000), (70, 9_072), (140, 9_139), (210, 9_210)];
        let mut errors = Vec::new();
        for (due, arrival) in frames {
            let (due, arrival) = (Nanos::from_micros(due), Nanos::from_micros(arrival));
            errors.extend(against.came(due, arrival, true));
        }
        assert_eq!(errors, [2_000, -3_000, 1_000]);
        let timing = against.report();
        assert_eq!(timing.gap_error_us.count, 3);
        assert_eq!(timing.gap_error_us.mean, 2.0);
        assert_eq!(timing.offset_us.min, -1.0);
        assert_eq!(timing.offset_us.max, 2.0);
        assert_eq!(timing.drift, None);
    }

    #[test]
    fn a_gap_beside_a_missing_frame_does_not_count() {
        let mut against = Against::new();
        against.came(Nanos::ZERO, Nanos::ZERO, false);
        let error = against.came(Nanos::from_secs(2), Nanos::from_secs(3), false);
        assert_eq!(error, None);
        let timing = against.report();
        assert_eq!(timing.gap_error_us.count, 0);
        assert_eq!(timing.offset_us.max, 1e6);
    }

    #[test]
    fn frames_due_before_the_first_are_judged_too() {
        let mut against = Against::new();
        against.came(Nanos::from_secs(5), Nanos::from_secs(1), false);
        against.came(Nanos::from_secs(4), Nanos::from_secs(2), false);
        assert_eq!(against.report().offset_us.max, 2e6);
    }
}
