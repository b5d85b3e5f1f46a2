//! The first fault in user code, which ends the run.

use std::sync::{Arc, OnceLock};

/// A run's first plugin fault. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Faults(pub(crate) Arc<OnceLock<String>>);

impl Faults {
    /// Returns a state without a fault.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Reports a fault. Only the first message is kept, because later faults may result from it.
    pub fn report(&self, message: String) {
        let _ = self.0.set(message);
    }

    /// Returns whether a fault was reported.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the first fault.
    pub fn first(&self) -> Option<String> {
        self.0.get().cloned()
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
