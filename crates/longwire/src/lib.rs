//! The `longwire` program on top of the engine, ports and runtime: command line, commands and
//! reports.
//!
//! Start reading at [`run`], which leads to one file per command in [`commands`]. The command line
//! is defined in [`cli`]; [`report`] formats the results of a run.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod error;
mod probe;
pub mod profile;
mod progress;
pub mod receiving;
mod remedies;
pub mod report;
mod rights;
pub mod signals;
pub mod simulate;
pub mod table;
pub mod top;
mod view;
mod watch;

use std::process::ExitCode;

pub use cli::{Cli, Globals};
pub use commands::Command;
pub use error::Error;

/// Runs the command that the command line selects.
///
/// # Errors
/// Any error of the command; [`Error::exit_code`] returns its exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Error> {
    report::start::doubt(&cli.globals.doubts, &cli.globals);
    cli.command.run(&cli.globals, Cli::with_examples())
}
