//! Histograms of lateness, recorded by stages and read by reports.

use std::sync::{Mutex, TryLockError};

use hdrhistogram::Histogram;
use longwire_engine::Nanos;

/// Returns a histogram of up to a minute in nanoseconds with two significant digits. It
/// is small because histograms are added on the data path, within a few microseconds.
pub(crate) fn nanos_histogram() -> Histogram<u64> {
    const MINUTE_NS: u64 = 60_000_000_000;
    // Only unordered bounds are refused.
    Histogram::new_with_bounds(1, MINUTE_NS, 2).unwrap_or_else(|_| unreachable!("bounds in order"))
}

/// Records one stage's lateness and periodically adds it to a shared histogram without
/// blocking on readers.
#[derive(Debug)]
pub(crate) struct LatenessRecorder {
    own: Histogram<u64>,
    flushed: Nanos,
}

/// Interval between additions to the shared histogram.
const FLUSH_EVERY: Nanos = Nanos::from_millis(500);

impl LatenessRecorder {
    pub(crate) fn new() -> LatenessRecorder {
        LatenessRecorder {
            own: nanos_histogram(),
            flushed: Nanos::ZERO,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, lateness: Nanos, times: u64) {
        if times > 0 {
            self.own.saturating_record_n(lateness.as_nanos(), times);
        }
    }

    /// Adds to the shared histogram if due and no reader holds the lock; returns whether
    /// it did.
    pub(crate) fn flush(
        &mut self,
        now: Nanos,
        shared: &Mutex<Histogram<u64>>,
        force: bool,
    ) -> bool {
        if !force && now.saturating_sub(self.flushed) < FLUSH_EVERY {
            return false;
        }
        let mut total = match shared.try_lock() {
            Ok(total) => total,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if !force => return false,
            Err(TryLockError::WouldBlock) => match shared.lock() {
                Ok(total) => total,
                Err(poisoned) => poisoned.into_inner(),
            },
        };
        // Equal bounds: adding cannot fail.
        let _ = total.add(&self.own);
        self.own.reset();
        self.flushed = now;
        true
    }
}
