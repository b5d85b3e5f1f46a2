//! JSON on stdout, and messages on stderr, whose reader may be gone (`longwire ... 2>&1 | head`).
//!
//! A failed message should neither end a run nor change its exit code, so the error is
//! ignored here. `eprintln!` would panic.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::Error;

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

/// Writes a value in the format of `--json`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Prints the result of a command in the format of `--json`.
///
/// # Errors
/// If stdout cannot be written.
pub fn print_json(value: &impl Serialize) -> Result<ExitCode, Error> {
    write_json(&mut io::stdout().lock(), value)?;
    Ok(ExitCode::SUCCESS)
}
