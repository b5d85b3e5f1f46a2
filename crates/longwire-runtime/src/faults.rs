//! The first fault of a user's own code, which ends the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where plugins say that they failed, and where a run looks whether one
/// has. Clones are the same place.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    /// Set after the message: a look costs no lock.
    reported: AtomicBool,
    message: Mutex<Option<String>>,
}

impl Faults {
    /// A place where nothing has failed.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Something has failed. The first message is kept: later faults may
    /// follow from it.
    pub fn report(&self, message: String) {
        let mut kept = self
            .0
            .message
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(message);
        self.0.reported.store(true, Ordering::Release);
    }

    /// Whether something has failed.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.reported.load(Ordering::Acquire)
    }

    /// What failed first.
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
