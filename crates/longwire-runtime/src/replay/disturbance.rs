//! Detects whether other work on the machine keeps a thread from waking in
//! time.
//!
//! A kernel without preemption finishes its work for another program before it
//! wakes a thread, regardless of the thread's class: hundreds of microseconds
//! where files are written. No margin makes up for that; not sleeping does.

use longwire_engine::Nanos;

/// A wake-up this much later than usual was delayed by other work on its core,
/// or by the machine.
const KEPT_WAITING: Nanos = Nanos::from_micros(30);

/// When this share of the wake-ups is delayed, sleeping costs more accuracy
/// than a core is worth: the thread spins for a while, then tries again.
const KEPT_WAITING_MAX: f64 = 0.05;
/// The share is a mean over about this many wake-ups.
const KEPT_WAITING_OVER: f64 = 512.0;
const SPIN_FOR: Nanos = Nanos::from_millis(500);
const SPIN_FOR_MAX: Nanos = Nanos::from_secs(8);

/// The share of delayed wake-ups of a thread, and its reaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disturbance {
    /// The share of the last wake-ups that were delayed: 1 is all of them.
    share: f64,
    /// The thread does not sleep before this.
    spins_until: Nanos,
    /// For how long it did not sleep, the last time, and in all.
    last: Nanos,
    total: Nanos,
}

impl Disturbance {
    /// Whether the thread must not sleep at `now`.
    pub fn spins_at(&self, now: Nanos) -> bool {
        now < self.spins_until
    }

    /// Returns for how long the thread did not sleep, in all.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// Notes a wake-up at `now` that was `beyond` later than usual.
    pub fn note(&mut self, beyond: Nanos, now: Nanos) {
        let one = f64::from(u8::from(beyond > KEPT_WAITING));
        self.share += (one - self.share) / KEPT_WAITING_OVER;
        if self.share > KEPT_WAITING_MAX {
            let next = self.last.saturating_mul(2).clamp(SPIN_FOR, SPIN_FOR_MAX);
            self.spins_until = now.saturating_add(next);
            self.total = self.total.saturating_add(next);
            self.last = next;
            // A few more wake-ups show whether it continues.
            self.share = KEPT_WAITING_MAX * 0.75;
        } else if self.share < KEPT_WAITING_MAX / 8.0 {
            self.last = Nanos::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One wake-up in `one_in` is delayed, for a second of gaps of 100 us or of
    /// as many as are slept for.
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
