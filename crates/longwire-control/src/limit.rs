//! How many requests are taken a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A token bucket: requests at a mean rate, and those of one second at once. Counts
/// in requests times nanoseconds, so that nothing is rounded.
#[derive(Debug)]
pub struct Limit {
    per_second: u64,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The credit of the bucket, in requests times 10^9.
    credit: u64,
    /// As of so long after the start.
    at: Duration,
}

/// A request, in the bucket's unit.
const REQUEST: u64 = 1_000_000_000;

impl Limit {
    /// A full bucket that holds one second's requests.
    pub fn new(per_second: u32) -> Limit {
        Limit {
            per_second: per_second.into(),
            started: Instant::now(),
            state: Mutex::new(State {
                credit: u64::from(per_second) * REQUEST,
                at: Duration::ZERO,
            }),
        }
    }

    /// Takes a request now.
    ///
    /// # Errors
    /// In how many seconds it may be tried again, rounded up, when there are
    /// too many.
    pub fn take(&self) -> Result<(), u64> {
        self.take_at(self.started.elapsed())
    }

    fn take_at(&self, now: Duration) -> Result<(), u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_sub(state.at).as_nanos();
        let gained = passed.saturating_mul(self.per_second.into());
        let full = self.per_second * REQUEST;
        let credit = u128::from(state.credit).saturating_add(gained);
        // It fits: never more than what is full.
        state.credit = credit.min(full.into()) as u64;
        state.at = state.at.max(now);
        match state.credit.checked_sub(REQUEST) {
            Some(left) => {
                state.credit = left;
                Ok(())
            }
            None => {
                let lacking = REQUEST - state.credit;
                Err(lacking.div_ceil(self.per_second * REQUEST).max(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_requests_at_once_and_then_at_the_rate() {
        let limit = Limit::new(10);
        let at = Duration::from_millis;
        for _ in 0..10 {
            assert_eq!(limit.take_at(at(0)), Ok(()));
        }
        assert_eq!(limit.take_at(at(99)), Err(1));
        assert_eq!(limit.take_at(at(100)), Ok(()));
        assert_eq!(limit.take_at(at(150)), Err(1));
        // Time that goes back, as two threads may see it, gives nothing.
        assert_eq!(limit.take_at(at(10)), Err(1));
        assert_eq!(limit.take_at(at(200)), Ok(()));
        // No more gathers than a second's.
        for _ in 0..10 {
            assert_eq!(limit.take_at(at(3_600_000)), Ok(()));
        }
        assert_eq!(limit.take_at(at(3_600_000)), Err(1));
    }

    #[test]
    fn the_largest_rate_does_not_overflow() {
        let limit = Limit::new(u32::MAX);
        assert_eq!(limit.take_at(Duration::from_secs(u64::MAX)), Ok(()));
    }
}
