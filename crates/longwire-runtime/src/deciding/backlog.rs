//! Overload detection: frames come due faster than the deciding stage hands them over.
//!
//! A single late frame, or a backlog after a machine pause, is not an overload: the stage catches
//! up, or its lag shrinks. The stage is overloaded if it never caught up and its lag did not shrink
//! for a whole [`WINDOW`].

use longwire_engine::Nanos;

/// Time without catching up after which the stage counts as overloaded.
pub(super) const WINDOW: Nanos = Nanos::from_millis(250);

/// Minimum decrease of the lag per window. A stage with 10 % spare capacity reaches it.
const SHRINKS_BY: Nanos = Nanos::from_millis(25);

/// Minimum lag that counts, unless the tolerance is larger. Smaller lags are normal wake-up
/// latency.
const LAG_MIN: Nanos = Nanos::from_millis(1);

/// Tracks the lag of the deciding stage.
#[derive(Debug)]
pub(super) struct Backlog {
    lag_min: Nanos,
    /// Start of the window and the lag then; `None` while the stage keeps up.
    window: Option<(Nanos, Nanos)>,
    overload: bool,
}

impl Backlog {
    /// Returns the backlog of a stage that keeps up. Lags up to `tolerance` or [`LAG_MIN`],
    /// whichever is larger, are ignored.
    pub fn new(tolerance: Nanos) -> Backlog {
        Backlog {
            lag_min: tolerance.max(LAG_MIN),
            window: None,
            overload: false,
        }
    }

    /// Records the release of the oldest due frame that has not left, if any. Call in every
    /// step.
    #[inline]
    pub fn note(&mut self, now: Nanos, oldest: Option<Nanos>) {
        let lag = oldest.map_or(Nanos::ZERO, |release| now.saturating_sub(release));
        if lag <= self.lag_min {
            self.window = None;
            self.overload = false;
            return;
        }
        let (start, before) = *self.window.get_or_insert((now, lag));
        if now.saturating_sub(start) >= WINDOW {
            self.overload = lag.saturating_add(SHRINKS_BY) > before;
            self.window = Some((now, lag));
        }
    }

    /// Returns whether the stage is overloaded.
    pub fn is_overload(&self) -> bool {
        self.overload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Feeds one lag per millisecond, starting at 10 s. Returns the number of overloaded
    /// samples.
    fn overloaded(lags_ms: impl IntoIterator<Item = u64>) -> usize {
        let mut backlog = Backlog::new(MS(1));
        let mut count = 0;
        for (ms, lag) in (10_000..).zip(lags_ms) {
            let oldest = (lag > 0).then(|| MS(ms - lag));
            backlog.note(MS(ms), oldest);
            count += usize::from(backlog.is_overload());
        }
        count
    }

    #[test]
    fn a_growing_and_a_standing_lag_are_overload() {
        assert!(overloaded((0..2_000).map(|ms| ms / 2)) > 1_700);
        assert!(overloaded((0..2_000).map(|_| 300)) > 1_700);
    }

    #[test]
    fn late_wake_ups_are_not() {
        // The stage is always late, but drains before each sleep.
        assert_eq!(
            overloaded((0..5_000).map(|ms| if ms % 10 < 9 { 40 } else { 0 })),
            0
        );
        assert_eq!(overloaded((0..5_000).map(|_| 1)), 0);
    }

    #[test]
    fn a_backlog_that_is_worked_off_is_not() {
        // A pause leaves a lag of 5 s, which shrinks by 1 ms per millisecond: half of the capacity
        // is spare.
        assert_eq!(overloaded((0..5_000).rev()), 0);
    }

    #[test]
    fn it_ends_when_the_stage_has_caught_up() {
        let mut backlog = Backlog::new(Nanos::ZERO);
        backlog.note(MS(5_000), Some(MS(4_000)));
        backlog.note(MS(5_250), Some(MS(4_100)));
        assert!(backlog.is_overload());
        backlog.note(MS(5_251), None);
        assert!(!backlog.is_overload());
    }
}
