//! Detection of other work on the machine that delays a thread's wake-ups.
//!
//! A kernel without preemption finishes its work for another program before it wakes a
//! thread, regardless of the thread's class: hundreds of microseconds where files are
//! written. No margin compensates for that; only spinning does.

use longwire_engine::Nanos;

/// Excess latency from which a wake-up counts as delayed by other work or the machine.
const KEPT_WAITING: Nanos = Nanos::from_micros(30);

/// Fraction of delayed wake-ups above which accuracy outweighs a core: the thread spins
/// for a while, then tries again.
const KEPT_WAITING_MAX: f64 = 0.05;
/// The fraction is averaged over about this many wake-ups.
const KEPT_WAITING_OVER: f64 = 512.0;
const SPIN_FOR: Nanos = Nanos::from_millis(500);
const SPIN_FOR_MAX: Nanos = Nanos::from_secs(8);

/// A thread's delayed wake-ups, and its reaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbance {
    /// Fraction of recent wake-ups that were delayed.
    share: f64,
    /// The thread spins until this time.
    spins_until: Nanos,
    /// Last and total spinning time.
    last: Nanos,
    total: Nanos,
}

impl Disturbance {
    /// Whether the thread must spin at `now`.
    pub fn spins_at(&self, now: Nanos) -> bool {
        now < self.spins_until
    }

    /// Returns the total spinning time.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// Records a wake-up at `now` with latency `beyond` the usual.
    pub fn note(&mut self, beyond: Nanos, now: Nanos) {
        let one = f64::from(u8::from(beyond > KEPT_WAITING));
        self.share += (one - self.share) / KEPT_WAITING_OVER;
        if self.share > KEPT_WAITING_MAX {
            let next = self.last.saturating_mul(2).clamp(SPIN_FOR, SPIN_FOR_MAX);
            self.spins_until = now.saturating_add(next);
            self.total = self.total.saturating_add(next);
            self.last = next;
            // A few more wake-ups show whether the disturbance continues.
            self.share = KEPT_WAITING_MAX * 0.75;
        } else if self.share < KEPT_WAITING_MAX / 8.0 {
            self.last = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays one wake-up in `one_in`, with gaps of 100 us, for a second; skips gaps that
    /// are spun.
    fn disturbed(one_in: u64) -> Disturbance {
        let mut disturbance = Disturbance::default();
        for number in 1..=10_000u64 {
            let now = Nanos::from_micros(100 * number);
            if !disturbance.spins_at(now) {
                let late = if number % one_in == 0 { 100 } else { 0 };
                disturbance.note(Nanos::from_micros(late), now);
            }
        }
        disturbance
    }

    #[test]
    fn a_thread_that_is_kept_from_waking_stops_sleeping() {
        assert_eq!(disturbed(50).total, Nanos::ZERO);
        let total = disturbed(8).total;
        assert!(total >= SPIN_FOR, "{total}");
    }
}
