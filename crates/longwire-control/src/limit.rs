//! Rate limit of requests.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Token bucket of one second's requests. Counts exactly, in requests × 10^9.
#[derive(Debug)]
pub struct Limit {
    per_second: u64,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Credit in requests × 10^9.
    credit: u64,
    /// Time of `credit` since the start.
    at: Duration,
}

/// Cost of a request.
const REQUEST: u64 = 1_000_000_000;

impl Limit {
    /// Creates a full bucket.
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

    /// Takes a request.
    ///
    /// # Errors
    /// Seconds until the next request is admitted, rounded up.
    pub fn take(&self) -> Result<(), u64> {
        self.take_at(self.started.elapsed())
    }

    fn take_at(&self, now: Duration) -> Result<(), u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_sub(state.at).as_nanos();
        let gained = passed.saturating_mul(self.per_second.into());
        let full = self.per_second * REQUEST;
        let credit = u128::from(state.credit).saturating_add(gained);
        // At most `full`, which fits.
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
    fn a_burst_of_one_second_is_admitted() {
        let limit = Limit::new(10);
        let at = Duration::from_millis;
        for _ in 0..10 {
            assert_eq!(limit.take_at(at(0)), Ok(()));
        }
        assert_eq!(limit.take_at(at(99)), Err(1));
        assert_eq!(limit.take_at(at(100)), Ok(()));
        assert_eq!(limit.take_at(at(150)), Err(1));
        // Time may appear to go backwards between threads.
        assert_eq!(limit.take_at(at(10)), Err(1));
        assert_eq!(limit.take_at(at(200)), Ok(()));
        // Credit is capped at one second.
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
