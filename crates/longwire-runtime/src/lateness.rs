//! Histograms of lateness: how stages record it and readers get it.

use std::sync::{Mutex, TryLockError};

use hdrhistogram::Histogram;
use longwire_engine::Nanos;

/// A histogram of nanoseconds up to a minute, to two significant digits:
/// small enough that adding it to another takes a few microseconds, since
/// that happens on the packet's way.
pub(crate) fn nanos_histogram() -> Histogram<u64> {
    const MINUTE_NS: u64 = 60_000_000_000;
    // Only bounds out of order are refused, and these are in order.
    Histogram::new_with_bounds(1, MINUTE_NS, 2).unwrap_or_else(|_| unreachable!("bounds in order"))
}

/// Lateness as one stage records it: into its own histogram, added to the
/// shared one now and then, and never waiting for a reader.
#[derive(Debug)]
pub(crate) struct LatenessRecorder {
    own: Histogram<u64>,
    flushed: Nanos,
}

/// How often a recorder adds its histogram to the shared one.
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

    /// Adds to the shared histogram if it is time and no reader holds it.
    /// Returns whether it did.
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
        // Both have the same bounds: adding cannot fail.
        let _ = total.add(&self.own);
        self.own.reset();
        self.flushed = now;
        true
    }
}
