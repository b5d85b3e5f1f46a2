//! The options of every command.

use clap::{Args, ValueEnum};

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Globals {
    /// Print one JSON value to stdout; to stderr if stdout carries a command's output or a
    /// capture
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

    /// Warnings about rates of the command line.
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
