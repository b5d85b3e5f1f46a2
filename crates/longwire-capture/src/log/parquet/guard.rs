//! Turns panics of the Parquet library into errors.
//!
//! The library panics on some damaged files. A damaged file must not end the
//! program, so these panics are returned as errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library, and returns a panic as an error. After an error, the caller
/// must not use the objects that the library worked on.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    stay_silent_inside();
    INSIDE.set(true);
    // A panic may leave any state behind; the caller drops it, as it promises.
    let ended = panic::catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(false);
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("inconsistent metadata");
        Err(ParquetError::General(format!("damaged: {text}")))
    })
}

/// Suppresses the message of a panic inside [`guarded`], which is reported as an
/// error later. Other panics are reported as usual.
fn stay_silent_inside() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if !INSIDE.get() {
                default_hook(information);
            }
        }));
    });
}
