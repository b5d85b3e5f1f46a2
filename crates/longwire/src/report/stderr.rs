//! Messages on stderr, whose reader may be gone, as in `longwire ... 2>&1 | head`.
//!
//! A message that cannot be written is no reason to end a run or to change its exit
//! code, so the error is ignored here. `eprintln!` panics instead.

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

/// Writes a line if stderr can be written.
pub fn print_line(line: fmt::Arguments<'_>) {
    // In one piece: a command may write to the same terminal.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
