//! The clock of a run: CLOCK_MONOTONIC, possibly with a constant offset.
//!
//! A run of several hosts continues when one machine restarts. CLOCK_MONOTONIC then
//! restarts at zero, and the run's start would be negative, which an unsigned number
//! cannot hold. So a process of such a run counts from ten years before its machine's
//! start.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use nix::time::{ClockId, clock_gettime};

/// Ten years, in nanoseconds.
const TEN_YEARS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// Added to CLOCK_MONOTONIC, in nanoseconds.
static LEAD: AtomicU64 = AtomicU64::new(0);

/// Moves the clock's origin to ten years before boot. Call before the first reading.
pub fn count_from_before_boot() {
    LEAD.store(TEN_YEARS, Ordering::Relaxed);
}

/// Returns the time.
#[inline]
pub fn monotonic_now() -> Nanos {
    // Cannot fail: Linux has this clock since 2.5.
    let kernel = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    });
    from_kernel(kernel)
}

/// Converts nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn from_kernel(time: u64) -> Nanos {
    Nanos::from_nanos(time.saturating_add(LEAD.load(Ordering::Relaxed)))
}

/// Converts a time to CLOCK_MONOTONIC, for kernel timers.
pub fn to_kernel(time: Nanos) -> Nanos {
    Nanos::from_nanos(time.as_nanos().saturating_sub(LEAD.load(Ordering::Relaxed)))
}
