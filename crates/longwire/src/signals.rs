//! Being told to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::EXIT_FAILED;

/// Set by the first signal that asks for an end; a second one ends the
/// program at once, should it not come to look.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag not yet set.
        flag::register_conditional_shutdown(signal, EXIT_FAILED.into(), Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
