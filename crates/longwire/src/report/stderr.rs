//! Messages on stderr, whose reader may be gone (`longwire ... 2>&1 | head`).
//!
//! A failed message should neither end a run nor change its exit code, so the error is
//! ignored here. `eprintln!` would panic.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Ignores the error of a closed pipe.
///
/// # Errors
/// Any other error of `written`.
pub fn ignore_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line; errors are ignored.
pub fn print_line(line: fmt::Arguments<'_>) {
    // In one write: a command may share the terminal.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
