//! Progress of long operations, such as reading a topology with a million links.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The current step and its progress.
#[derive(Debug)]
pub struct Steps {
    name: Mutex<&'static str>,
    done: AtomicU64,
    /// Total number of items; 0 if unknown.
    all: AtomicU64,
}

/// A snapshot of [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProgress {
    /// Name of the current step.
    pub name: &'static str,
    /// Items processed.
    pub done: u64,
    /// Total number of items, if known.
    pub all: Option<u64>,
}

/// A tracker whose progress is never read.
static IGNORED: Steps = Steps::new();

impl Steps {
    /// Creates a tracker without a current step.
    pub const fn new() -> Steps {
        Steps {
            name: Mutex::new(""),
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
        }
    }

    /// Returns a tracker whose progress is never read.
    pub fn ignored() -> &'static Steps {
        &IGNORED
    }

    /// Starts a step; `all` is the number of items, if known.
    pub fn begin(&self, name: &'static str, all: Option<u64>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts an item.
    #[inline]
    pub fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current progress.
    pub fn progress(&self) -> StepProgress {
        let all = self.all.load(Ordering::Relaxed);
        StepProgress {
            name: *self.name.lock().unwrap_or_else(PoisonError::into_inner),
            done: self.done.load(Ordering::Relaxed),
            all: (all > 0).then_some(all),
        }
    }
}

impl Default for Steps {
    fn default() -> Steps {
        Steps::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_counts_from_zero() {
        let steps = Steps::new();
        steps.begin("reading links", None);
        (0..3).for_each(|_| steps.advance());
        let progress = steps.progress();
        assert_eq!(
            (progress.name, progress.done, progress.all),
            ("reading links", 3, None)
        );
        steps.begin("preparing links", Some(2));
        assert_eq!((steps.progress().done, steps.progress().all), (0, Some(2)));
    }
}
