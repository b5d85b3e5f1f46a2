//! Arrival timing: relative to a schedule, and interarrival jitter.

use longwire_engine::Nanos;

use super::drift::DriftFit;
use super::report::Timing;
use super::spread::Distribution;

/// Frame timing relative to known due times.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleComparison {
    gap_error: Distribution,
    offset: Distribution,
    drift: DriftFit,
    /// Due time and offset of the first frame.
    origin: Option<(u64, i64)>,
    /// Due time and arrival of the last frame.
    last: Option<(u64, u64)>,
}

impl ScheduleComparison {
    /// Records a frame; `due` and `arrival` may have different time bases. If `next` is set, the
    /// frame directly follows its predecessor in both, so the gap counts. Returns the signed gap
    /// error.
    #[inline]
    pub(super) fn record(&mut self, due: Nanos, arrival: Nanos, next: bool) -> Option<i64> {
        let (due, arrival) = (due.as_nanos(), arrival.as_nanos());
        let offset = arrival.wrapping_sub(due).cast_signed();
        let (first_due, first_offset) = *self.origin.get_or_insert((due, offset));
        let offset = offset.wrapping_sub(first_offset);
        self.offset.record(offset);
        // A frame due before the first one has no time since the start of the schedule, so the fit
        // excludes it.
        if let Some(since) = due.checked_sub(first_due) {
            self.drift.record(since, offset);
        }
        let last = self.last.replace((due, arrival));
        let (last_due, last_arrival) = last.filter(|_| next)?;
        let gap = arrival.wrapping_sub(last_arrival).cast_signed();
        let error = gap.wrapping_sub(due.wrapping_sub(last_due).cast_signed());
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

/// Interarrival jitter (RFC 3550, section 6.4.1): smoothed mean deviation of delay differences in
/// arrival order, with a gain of 1/16.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    last: Option<i64>,
    /// Jitter in 1/16 ns, rounded as specified in RFC 3550, appendix A.8.
    now: u64,
    max: u64,
}

impl Jitter {
    #[inline]
    /// Records a delay in nanoseconds.
    pub(super) fn record(&mut self, delay: i64) {
        if let Some(last) = self.last.replace(delay) {
            self.now = self.now.saturating_add(delay.abs_diff(last)) - ((self.now + 8) >> 4);
            self.max = self.max.max(self.now);
        }
    }

    /// Returns the current jitter in microseconds.
    pub(super) fn now_us(&self) -> f64 {
        self.now as f64 / 16e3
    }

    /// Returns the maximum jitter in microseconds.
    pub(super) fn max_us(&self) -> f64 {
        self.max as f64 / 16e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_errors_are_relative_to_the_schedule() {
        let mut against = ScheduleComparison::default();
        // Pairs of due time and arrival in microseconds, with different time bases.
        let frames = [(0, 9_000), (70, 9_072), (140, 9_139), (210, 9_210)];
        let mut errors = Vec::new();
        for (due, arrival) in frames {
            let (due, arrival) = (Nanos::from_micros(due), Nanos::from_micros(arrival));
            errors.extend(against.record(due, arrival, true));
        }
        assert_eq!(errors, [2_000, -3_000, 1_000]);
        let timing = against.report();
        assert_eq!(timing.gap_error_us.count, 3);
        assert_eq!(timing.gap_error_us.mean, 2.0);
        assert_eq!(timing.offset_us.min, -1.0);
        assert_eq!(timing.offset_us.max, 2.0);
        assert_eq!(timing.drift, None);
    }

    /// Gaps next to a missing frame are ignored, even if the second frame is due before the first.
    #[test]
    fn a_gap_beside_a_missing_frame_does_not_count() {
        for (first, second, offset) in [((0, 0), (2, 3), 1e6), ((5, 1), (4, 2), 2e6)] {
            let mut against = ScheduleComparison::default();
            let errors = [first, second].map(|(due, arrival)| {
                against.record(Nanos::from_secs(due), Nanos::from_secs(arrival), false)
            });
            assert_eq!(errors, [None; 2]);
            let timing = against.report();
            assert_eq!(timing.gap_error_us.count, 0);
            assert_eq!(timing.offset_us.max, offset);
        }
    }
}
