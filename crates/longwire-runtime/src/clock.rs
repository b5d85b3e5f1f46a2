//! A run's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;

pub use longwire_io::clock::{count_from_before_boot, monotonic_now};

/// A stage's time source.
///
/// Stages read it once per burst, which spreads the cost of a reading (about 20 ns through the vDSO
/// with a stable TSC) over many frames.
#[derive(Clone, Debug)]
pub enum Clock {
    /// [`monotonic_now`], the clock for arrivals and releases in a live run.
    Monotonic,
    /// Virtual time: the latest arrival at the ingress stage.
    Arrivals(Arc<AtomicU64>),
}

impl Clock {
    /// Returns a virtual clock that starts at zero.
    pub fn arrivals() -> Clock {
        Clock::Arrivals(Arc::new(AtomicU64::new(0)))
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self {
            Clock::Monotonic => monotonic_now(),
            Clock::Arrivals(latest) => Nanos::from_nanos(latest.load(Ordering::Acquire)),
        }
    }

    /// Sets a virtual clock to the latest arrival. A no-op on a real clock.
    #[inline]
    pub fn advance(&self, latest: Nanos) {
        if let Clock::Arrivals(shared) = self {
            shared.store(latest.as_nanos(), Ordering::Release);
        }
    }
}
