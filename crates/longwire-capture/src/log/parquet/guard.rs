//! A wall around the Parquet library.
//!
//! It answers some damaged files with a panic. A damaged file is nothing that
//! may end the program, so such a panic becomes the error that it should have
//! been.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    /// Whether this thread is inside the wall.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library; what it was working on must not be used again after an
/// error.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    stay_silent_inside();
    INSIDE.set(true);
    // Whatever state a panic leaves behind is dropped, as the caller promises.
    let ended = panic::catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(false);
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("it makes no sense");
        Err(ParquetError::General(format!("damaged: {text}")))
    })
}

/// A panic inside the wall is an error that is told later; one outside is
/// told as ever.
fn stay_silent_inside() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if !INSIDE.get() {
                told(information);
            }
        }));
    });
}
