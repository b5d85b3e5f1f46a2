//! Progress of work in steps, such as reading a topology of a million links.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The current step, and how much of it is done.
#[derive(Debug)]
pub struct Steps {
    name: Mutex<&'static str>,
    done: AtomicU64,
    /// 0 if that is not known.
    all: AtomicU64,
}

/// The progress of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProgress {
    /// The step.
    pub name: &'static str,
    /// Parts of it that are done.
    pub done: u64,
    /// All its parts, if their number is known.
    pub all: Option<u64>,
}

/// Steps that are not shown.
static IGNORED: Steps = Steps::new();

impl Steps {
    /// Returns work that has no step yet.
    pub const fn new() -> Steps {
        Steps {
            name: Mutex::new(""),
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
        }
    }

    /// Returns steps for work that is not watched.
    pub fn ignored() -> &'static Steps {
        &IGNORED
    }

    /// Begins a step of `all` parts, if their number is known.
    pub fn begin(&self, name: &'static str, all: Option<u64>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts one part of the step as done.
    #[inline]
    pub fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how far the work is.
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
    fn each_step_counts_its_own_parts() {
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
