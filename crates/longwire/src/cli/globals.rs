//! Global options and coloured output.

use std::fmt::Display;
use std::io::IsTerminal;

use clap::{Args, ValueEnum};

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Globals {
    /// Print JSON to stdout, or to stderr if stdout carries a command's output or a capture
    #[arg(long, global = true)]
    pub json: bool,

    /// Print the full report with all counters, and notes at the start
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// Print only errors, unmet conditions and warnings about probable mistakes
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,

    /// Warnings about rates that were probably mistyped.
    #[arg(skip)]
    pub doubts: Vec<String>,
}

impl Globals {
    /// Returns whether remarks are printed on stderr.
    pub fn talks(&self) -> bool {
        !self.json && !self.quiet
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Colours text, or passes it through unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Returns the painter for a stream, according to the user's choice of colour.
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
