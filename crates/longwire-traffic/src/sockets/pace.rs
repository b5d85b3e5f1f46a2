//! Sends at scheduled times.

use longwire_engine::Nanos;
use longwire_runtime::clock::monotonic_now;
use std::time::Duration;

/// Time before an event during which a paced sender spins.
const SPIN: Nanos = Nanos::from_micros(100);

/// An absolute schedule, so that errors do not accumulate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start: Nanos,
    per_second: u64,
    sent: u64,
}

impl Pace {
    /// Starts a schedule with `per_second` events; 0 means as fast as possible.
    pub fn new(per_second: u64) -> Pace {
        Pace {
            start: monotonic_now(),
            per_second,
            sent: 0,
        }
    }

    /// Waits for the next due time.
    pub fn wait(&mut self) {
        let Some(offset) = nanos_of(self.sent, self.per_second) else {
            return;
        };
        self.sent += 1;
        wait_until(self.start.saturating_add(Nanos::from_nanos(offset)));
    }
}

/// Returns the due time of event `nth`, since the start.
fn nanos_of(nth: u64, per_second: u64) -> Option<u64> {
    let nanos = (u128::from(nth) * 1_000_000_000).checked_div(u128::from(per_second))?;
    Some(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Sleeps until shortly before `due`, then spins.
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
