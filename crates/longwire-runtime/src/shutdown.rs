//! A program that was asked to stop more than once.

use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::plugin::{end_process, ends, on_stuck_main};

static HURRIED: AtomicBool = AtomicBool::new(false);

/// Makes stopping runs not wait for threads that do not end: their reports hold
/// the counts so far and name the threads that were left behind. Safe in a
/// signal handler.
pub fn hurry() {
    HURRIED.store(true, Ordering::Release);
}

/// Whether [`hurry`] was called.
pub(crate) fn is_hurried() -> bool {
    HURRIED.load(Ordering::Acquire)
}
