//! Coloured output.

use std::fmt::Display;
use std::io::IsTerminal;

use super::globals::{Color, Globals};

/// Colours text, or returns it unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Returns the colouring of a stream, according to the user's choice.
    pub fn new(globals: &Globals, stream: &impl IsTerminal) -> Paint {
        let on = match globals.color {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org: a non-empty value disables colour.
            Color::Auto => {
                stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        };
        Paint { on }
    }

    /// Disables colour.
    pub const PLAIN: Paint = Paint { on: false };

    /// Formats headings and names.
    pub fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    /// Formats details.
    pub fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }

    /// Formats a good result.
    pub fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    /// Formats a warning.
    pub fn warn(self, text: impl Display) -> String {
        self.with("33", text)
    }

    /// Formats an error.
    pub fn bad(self, text: impl Display) -> String {
        self.with("31", text)
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}
