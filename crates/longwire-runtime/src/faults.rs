//! The first fault of user code, which ends the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The first plugin fault of a run. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<FaultState>);

/// A weak reference to a [`Faults`].
#[derive(Clone, Debug)]
pub(crate) struct WeakFaults(Weak<FaultState>);

impl WeakFaults {
    /// Whether a run still holds it.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Whether it refers to `faults`.
    pub fn is(&self, faults: &Faults) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&faults.0))
    }

    /// Returns the [`Faults`] if a run still holds it.
    pub fn upgrade(&self) -> Option<Faults> {
        self.0.upgrade().map(Faults)
    }
}

#[derive(Debug, Default)]
struct FaultState {
    /// Set after the message, so that a check takes no lock.
    reported: AtomicBool,
    message: Mutex<Option<String>>,
}

impl Faults {
    /// Returns a state without a fault.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Returns a weak reference.
    pub(crate) fn downgrade(&self) -> WeakFaults {
        WeakFaults(Arc::downgrade(&self.0))
    }

    /// Reports a fault. Only the first message is kept, as later faults may follow from
    /// it.
    pub fn report(&self, message: String) {
        let mut kept = self
            .0
            .message
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(message);
        self.0.reported.store(true, Ordering::Release);
    }

    /// Whether a fault was reported.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.reported.load(Ordering::Acquire)
    }

    /// Returns the first fault.
    pub fn first(&self) -> Option<String> {
        if !self.any() {
            return None;
        }
        let kept = self.0.message.lock();
        kept.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_kept_and_seen_by_all() {
        let faults = Faults::new();
        let seen = faults.clone();
        assert!(!seen.any());
        assert_eq!(seen.first(), None);
        faults.report("one".to_owned());
        faults.report("two".to_owned());
        assert!(seen.any());
        assert_eq!(seen.first().as_deref(), Some("one"));
    }
}
