//! Accuracy of a replay's departures: gap errors relative to the schedule, and drift.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use longwire_engine::Nanos;

use crate::lateness::{LatenessRecorder, nanos_histogram};

/// Gap errors and drift of a stage's departures.
#[derive(Debug)]
pub(crate) struct Departures {
    gap_errors: LatenessRecorder,
    drift: Drift,
    /// Lateness of the last frame.
    last: Option<Nanos>,
}

/// The published state, for reports.
#[derive(Debug)]
pub(crate) struct DeparturesShared {
    pub gap_errors: Mutex<Histogram<u64>>,
    pub drift: Mutex<Drift>,
}

impl DeparturesShared {
    pub fn new() -> DeparturesShared {
        DeparturesShared {
            gap_errors: Mutex::new(nanos_histogram()),
            drift: Mutex::new(Drift::default()),
        }
    }
}

impl Departures {
    pub fn new() -> Departures {
        Departures {
            gap_errors: LatenessRecorder::new(),
            drift: Drift::default(),
            last: None,
        }
    }

    /// Records the lateness of a frame due at `release`. A gap error is the difference of
    /// two consecutive latenesses.
    #[inline]
    pub fn record(&mut self, release: Nanos, lateness: Nanos) {
        if let Some(last) = self.last.replace(lateness) {
            let error = lateness.as_nanos().abs_diff(last.as_nanos());
            self.gap_errors.record(Nanos::from_nanos(error), 1);
        }
        self.drift.add(release, lateness);
    }

    /// Adds to the published state if due.
    pub fn flush(&mut self, now: Nanos, shared: &DeparturesShared, force: bool) {
        if self.gap_errors.flush(now, &shared.gap_errors, force) {
            *shared.drift.lock().unwrap_or_else(PoisonError::into_inner) = self.drift;
        }
    }
}

/// Least-squares fit of lateness over time; its slope is the drift.
///
/// Sums are relative to the first frame, in seconds and microseconds, for which 53-bit
/// floats are precise enough for days.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    origin: Option<Nanos>,
    frames: f64,
    time: f64,
    late: f64,
    time_squared: f64,
    time_late: f64,
}

impl Drift {
    #[inline]
    fn add(&mut self, release: Nanos, lateness: Nanos) {
        let origin = *self.origin.get_or_insert(release);
        let time = release.saturating_sub(origin).as_nanos() as f64 * 1e-9;
        let late = lateness.as_nanos() as f64 * 1e-3;
        self.frames += 1.0;
        self.time += time;
        self.late += late;
        self.time_squared += time * time;
        self.time_late += time * late;
    }

    /// Returns the slope in microseconds per second, which is ppm; `None` if there are
    /// too few frames or all are due at once.
    pub fn parts_per_million(&self) -> Option<f64> {
        let Drift {
            frames,
            time,
            late,
            time_squared,
            time_late,
            ..
        } = *self;
        let spread = frames * time_squared - time * time;
        (frames >= 2.0 && spread > 0.0).then(|| (frames * time_late - time * late) / spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the departures of frames every 70 us with lateness `late(frame number)`.
    fn departures(late: impl Fn(u64) -> u64) -> (Departures, DeparturesShared) {
        let (mut departures, shared) = (Departures::new(), DeparturesShared::new());
        for number in 0..100_000 {
            let release = Nanos::from_micros(1_000_000 + 70 * number);
            departures.record(release, Nanos::from_nanos(late(number)));
        }
        departures.flush(Nanos::ZERO, &shared, true);
        (departures, shared)
    }

    #[test]
    fn constant_lateness_spoils_no_gap_and_is_no_drift() {
        let (departures, shared) = departures(|_| 1_500);
        assert_eq!(shared.gap_errors.lock().unwrap().max(), 0);
        assert!(departures.drift.parts_per_million().unwrap().abs() < 1e-6);
    }

    #[test]
    fn one_late_frame_spoils_two_gaps() {
        let (_, shared) = departures(|number| if number == 500 { 4_000 } else { 0 });
        let histogram = shared.gap_errors.lock().unwrap();
        assert_eq!(histogram.count_between(3_900, 4_100), 2);
        assert_eq!(histogram.len(), 99_999);
    }

    #[test]
    fn a_slow_clock_is_a_drift() {
        // 7 ns per 70 us.
        let (departures, _) = departures(|number| 7 * number);
        let drift = departures.drift.parts_per_million().unwrap();
        assert!((drift - 100.0).abs() < 1e-6, "{drift}");
    }

    #[test]
    fn a_single_moment_has_no_drift() {
        let mut drift = Drift::default();
        drift.add(Nanos::from_secs(1), Nanos::ZERO);
        drift.add(Nanos::from_secs(1), Nanos::from_secs(1));
        assert_eq!(drift.parts_per_million(), None);
    }
}
