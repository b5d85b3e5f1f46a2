//! The clock of a run: CLOCK_MONOTONIC, optionally with a constant offset.
//!
//! A run that spans several hosts continues when one machine restarts. CLOCK_MONOTONIC on that
//! machine then starts at zero again, which would make the run's start negative, but times are
//! unsigned. Processes of multi-host runs therefore count from ten years before boot.
//!
//! `ClockReading` measures the offset of another clock.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use nix::time::{ClockId, clock_gettime};

/// Ten years, in nanoseconds.
const TEN_YEARS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// Offset added to CLOCK_MONOTONIC, in nanoseconds.
static LEAD: AtomicU64 = AtomicU64::new(0);

/// Moves the clock's origin to ten years before boot. Call before the first reading.
pub fn count_from_before_boot() {
    LEAD.store(TEN_YEARS, Ordering::Relaxed);
}

/// Returns the current time.
#[inline]
pub fn monotonic_now() -> Nanos {
    // Cannot fail: Linux has had this clock since 2.5.
    from_kernel(read_clock(ClockId::CLOCK_MONOTONIC))
}

/// Converts a CLOCK_MONOTONIC time in nanoseconds to the run's clock.
#[inline]
pub fn from_kernel(time: u64) -> Nanos {
    Nanos::from_nanos(time.saturating_add(LEAD.load(Ordering::Relaxed)))
}

/// Converts a time to CLOCK_MONOTONIC, for kernel timers.
pub fn to_kernel(time: Nanos) -> Nanos {
    Nanos::from_nanos(time.as_nanos().saturating_sub(LEAD.load(Ordering::Relaxed)))
}

/// Maximum width of an accurate reading in nanoseconds. A wider reading was interrupted and is
/// repeated.
pub(super) const NARROW: u64 = 200;
/// Maximum number of readings per measurement.
const TRIES: usize = 4;

/// A reading of another clock, bracketed by readings of the run's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    /// The run's clock before the other was read.
    pub before: u64,
    /// Reading of the other clock.
    pub other: u64,
    /// The run's clock after the other was read.
    pub after: u64,
}

impl ClockReading {
    /// Returns the narrowest of several readings.
    pub fn new(clock: ClockId) -> ClockReading {
        let mut best = ClockReading::once(clock);
        for _ in 1..TRIES {
            if best.width() <= NARROW {
                break;
            }
            let again = ClockReading::once(clock);
            if again.width() < best.width() {
                best = again;
            }
        }
        best
    }

    fn once(clock: ClockId) -> ClockReading {
        ClockReading {
            before: monotonic_now().as_nanos(),
            other: read_clock(clock),
            after: monotonic_now().as_nanos(),
        }
    }

    /// Returns the time between the two readings of the run's clock, in nanoseconds.
    pub fn width(self) -> u64 {
        self.after.saturating_sub(self.before)
    }

    /// Returns the other clock minus the run's, in nanoseconds. Times are far below 2^63
    /// ns, so the difference is exact.
    pub fn offset(self) -> i64 {
        let middle = self.before + self.width() / 2;
        self.other.wrapping_sub(middle).cast_signed()
    }
}

/// Returns a clock's time in nanoseconds.
pub fn read_clock(clock: ClockId) -> u64 {
    // Fails only on a broken kernel; zero makes every stamp implausible.
    clock_gettime(clock).map_or(0, |t| {
        t.tv_sec().cast_unsigned() * 1_000_000_000 + t.tv_nsec().cast_unsigned()
    })
}

/// Returns a clock's offset from the run's clock in nanoseconds; positive if it is ahead.
pub(super) fn ahead_of_monotonic(clock: ClockId) -> i64 {
    ClockReading::new(clock).offset()
}
