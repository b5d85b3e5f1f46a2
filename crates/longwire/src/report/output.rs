//! Writes JSON to stdout and messages to stderr; either may be closed (`longwire ... 2>&1 | head`).
//!
//! A failed message must neither end a run nor change its exit code, so such errors are ignored.
//! `eprintln!` would panic.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::Error;

/// Ignores the error of a closed pipe.
///
/// # Errors
/// Any other error in `written`.
pub fn ignore_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to stderr; ignores errors.
pub fn print_line(line: fmt::Arguments<'_>) {
    // Use a single write: a command may share the terminal.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes an error message to stderr, as a line.
pub fn print_error(error: &impl fmt::Display) {
    print_line(format_args!("error: {}", printable(error)));
}

/// Escapes the control characters of a message, which may quote a file and which a terminal would
/// interpret. Keeps line breaks and tabs.
pub fn printable(message: &impl fmt::Display) -> String {
    let mut text = String::new();
    for char in message.to_string().chars() {
        match char {
            '\n' | '\t' => text.push(char),
            char if char.is_control() => text.extend(char.escape_default()),
            char => text.push(char),
        }
    }
    text
}

/// Writes a value in `--json` format.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Prints a command's result in `--json` format.
///
/// # Errors
/// If stdout cannot be written.
pub fn print_json(value: &impl Serialize) -> Result<ExitCode, Error> {
    write_json(&mut io::stdout().lock(), value)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(
            printable(&"a\u{1b}[31mb\0\n\tä\u{9b}"),
            "a\\u{1b}[31mb\\u{0}\n\tä\\u{9b}"
        );
    }
}
