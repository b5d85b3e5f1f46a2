//! Sending at given times.

use longwire_engine::Nanos;
use longwire_runtime::clock::monotonic_now;
use std::time::Duration;

/// How long before its time a paced sender stops sleeping and spins.
const SPIN: Nanos = Nanos::from_micros(100);

/// An absolute schedule: an error in one sending never moves the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start: Nanos,
    per_second: u64,
    sent: u64,
}

impl Pace {
    /// Makes a schedule of `per_second` sendings from now on; zero is as fast as possible.
    pub fn new(per_second: u64) -> Pace {
        Pace {
            start: monotonic_now(),
            per_second,
            sent: 0,
        }
    }

    /// Waits until the next one is due.
    pub fn wait(&mut self) {
        let Some(offset) = nanos_of(self.sent, self.per_second) else {
            return;
        };
        self.sent += 1;
        wait_until(self.start.saturating_add(Nanos::from_nanos(offset)));
    }
}

/// When the `nth` of `per_second` is due, from the start.
fn nanos_of(nth: u64, per_second: u64) -> Option<u64> {
    let nanos = (u128::from(nth) * 1_000_000_000).checked_div(u128::from(per_second))?;
    Some(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Sleeps most of the way, spins the rest.
fn wait_until(due: Nanos) {
    let ahead = due.saturating_sub(monotonic_now());
    if ahead > SPIN {
        let sleep = ahead.saturating_sub(SPIN);
        std::thread::sleep(Duration::from_nanos(sleep.as_nanos()));
    }
    while monotonic_now() < due {
        std::hint::spin_loop();
    }
}
