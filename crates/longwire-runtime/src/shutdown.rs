//! Hurried stop, after repeated stop requests.

use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::plugin::{end_process, ends, on_stuck_main};

static HURRIED: AtomicBool = AtomicBool::new(false);

/// Makes runs stop without waiting for stuck threads. Their reports contain the counts so far and
/// name these threads. Async-signal-safe.
pub fn hurry() {
    HURRIED.store(true, Ordering::Release);
}

/// Returns whether [`hurry`] was called.
pub(crate) fn is_hurried() -> bool {
    HURRIED.load(Ordering::Acquire)
}
