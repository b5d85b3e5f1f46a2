//! Estimates the drift of arrivals relative to a schedule; [`Drift`] describes the method.

use super::report::Drift;

/// Maximum number of intervals.
const STRETCHES: usize = 256;

/// Minimum number of intervals for a fit.
const STRETCHES_MIN: usize = 8;

/// Initial interval length in nanoseconds.
const LENGTH_START: u64 = 1_000_000;

/// The earliest frame in an interval, relative to the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Earliest {
    due: u64,
    /// Arrival minus due time.
    offset: i64,
}

/// Fits a slope in bounded memory: when intervals run out, neighbours are merged.
#[derive(Clone, Debug)]
pub(super) struct DriftFit {
    length: u64,
    stretches: Vec<Option<Earliest>>,
}

impl Default for DriftFit {
    fn default() -> DriftFit {
        DriftFit {
            length: LENGTH_START,
            stretches: vec![None; STRETCHES],
        }
    }
}

impl DriftFit {
    /// Records a frame: `due` is its due time since the start of the schedule and `offset` its
    /// lateness, both in nanoseconds.
    #[inline]
    pub(super) fn record(&mut self, due: u64, offset: i64) {
        while due / self.length >= STRETCHES as u64 {
            self.merge();
        }
        let slot = &mut self.stretches[(due / self.length) as usize];
        let point = Earliest { due, offset };
        match slot {
            Some(earliest) if earliest.offset <= offset => {}
            _ => *slot = Some(point),
        }
    }

    #[cold]
    fn merge(&mut self) {
        for index in 0..STRETCHES {
            let pair = self.stretches.get(2 * index..2 * index + 2);
            let both = pair.unwrap_or_default().iter().flatten();
            self.stretches[index] = both.min_by_key(|earliest| earliest.offset).copied();
        }
        self.length = self.length.saturating_mul(2);
    }

    /// Returns the slope, once there are enough intervals.
    pub(super) fn fit(&self) -> Option<Drift> {
        let points: Vec<Earliest> = self.stretches.iter().flatten().copied().collect();
        let count = points.len();
        if count < STRETCHES_MIN {
            return None;
        }
        let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
        for (index, one) in points.iter().enumerate() {
            for other in &points[index + 1..] {
                let rise = (other.offset - one.offset) as f64;
                slopes.push(rise / (other.due - one.due) as f64 * 1e6);
            }
        }
        slopes.sort_unstable_by(f64::total_cmp);
        // Ranks that bound Sen's 95 % confidence interval, from the variance of Kendall's
        // statistic.
        let pairs = slopes.len() as f64;
        let points = count as f64;
        let by_chance = 1.96 * (points * (points - 1.0) * (2.0 * points + 5.0) / 18.0).sqrt();
        let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
        Some(Drift {
            ppm: median(&slopes),
            low_ppm: at(((pairs - by_chance) / 2.0).floor()),
            high_ppm: at(((pairs + by_chance) / 2.0).ceil()),
            stretches: count,
        })
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fits frames every 70 us, whose offsets are `offset(number, due)`.
    fn fit(count: u64, offset: impl Fn(u64, u64) -> f64) -> Option<Drift> {
        let mut drift = DriftFit::default();
        for number in 0..count {
            let due = number * 70_000;
            drift.record(due, offset(number, due) as i64);
        }
        drift.fit()
    }

    /// Returns a pseudo-random number of microseconds.
    fn noise(number: u64) -> f64 {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as f64 / 4.0
    }

    #[test]
    fn drift_is_found_despite_noise() {
        for slope in [-300.0, -1.0, 0.0, 2.5, 28_600.0] {
            let drift = fit(50_000, |number, due| {
                5e9 + noise(number) + due as f64 * slope / 1e6
            })
            .unwrap_or_default();
            // The bound is 0.1 ppm plus 10^-5 of the slope: with a steep slope, only frames near
            // one end of an interval can be its earliest.
            let bound = 0.1 + slope.abs() / 1e5;
            assert!((drift.ppm - slope).abs() < bound, "{slope}: {drift:?}");
            assert!(drift.low_ppm <= drift.ppm && drift.ppm <= drift.high_ppm);
            assert!(drift.stretches > 64);
        }
    }

    #[test]
    fn pauses_do_not_change_the_drift() {
        // Delay frames by up to 4 ms for 10 % of the time, more often towards the end of the run.
        let held = |number: u64| {
            let pause = number % 5_000 < 200 + number / 100;
            if pause {
                (number % 57) as f64 * 70_000.0
            } else {
                0.0
            }
        };
        let drift = fit(50_000, |number, due| {
            noise(number) + held(number) + due as f64 / 1e6
        })
        .unwrap_or_default();
        assert!((drift.ppm - 1.0).abs() < 0.2, "{drift:?}");
    }

    #[test]
    fn few_frames_give_no_drift() {
        assert_eq!(fit(0, |_, _| 0.0), None);
        assert_eq!(fit(3, |_, _| 0.0), None);
        // All frames are due at almost the same time.
        let mut drift = DriftFit::default();
        (0..1_000).for_each(|due| drift.record(due, 7));
        assert_eq!(drift.fit(), None);
    }

    #[test]
    fn memory_does_not_grow_with_time() {
        let mut drift = DriftFit::default();
        for second in 0..86_400u64 {
            let due = second * 1_000_000_000;
            drift.record(due, (due / 100_000) as i64);
        }
        assert_eq!(drift.stretches.len(), STRETCHES);
        let drift = drift.fit().unwrap_or_default();
        assert!((drift.ppm - 10.0).abs() < 0.01, "{drift:?}");
    }
}
