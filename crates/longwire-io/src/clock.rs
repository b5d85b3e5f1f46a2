//! The clock of a run: CLOCK_MONOTONIC, or that clock with a constant added.
//!
//! A run of several hosts goes on while one of its machines is started again. The machine's
//! CLOCK_MONOTONIC begins at zero then, and the run began before that: at a time which an
//! unsigned number cannot hold. So a process that is one of several hosts counts from ten
//! years before its machine's start.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use nix::time::{ClockId, clock_gettime};

/// Ten years, in nanoseconds.
const TEN_YEARS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// Added to CLOCK_MONOTONIC, in nanoseconds.
static LEAD: AtomicU64 = AtomicU64::new(0);

/// Lets the clock count from ten years before the machine's start. To be called before
/// anything reads it.
pub fn count_from_before_boot() {
    LEAD.store(TEN_YEARS, Ordering::Relaxed);
}

/// Returns the time.
#[inline]
pub fn monotonic_now() -> Nanos {
    // Linux has had this clock since 2.5: it cannot fail.
    let kernel = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    });
    from_kernel(kernel)
}

/// Converts a time of CLOCK_MONOTONIC, in nanoseconds.
#[inline]
pub fn from_kernel(time: u64) -> Nanos {
    Nanos::from_nanos(time.saturating_add(LEAD.load(Ordering::Relaxed)))
}

/// Converts a time to CLOCK_MONOTONIC, for timers of the kernel.
pub fn to_kernel(time: Nanos) -> Nanos {
    Nanos::from_nanos(time.as_nanos().saturating_sub(LEAD.load(Ordering::Relaxed)))
}
