//! Hurried stop, after repeated stop requests.

use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::plugin::{end_process, ends, on_stuck_main};

static HURRIED: AtomicBool = AtomicBool::new(false);

/// Makes stopping runs not wait for stuck threads. Their reports hold the counts so far and name
/// those threads. Async-signal-safe.
pub fn hurry() {
    HURRIED.store(true, Ordering::Release);
}

/// Whether [`hurry`] was called.
pub(crate) fn is_hurried() -> bool {
    HURRIED.load(Ordering::Acquire)
}
