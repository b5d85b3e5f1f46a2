//! The program around Longwire's engine, ports and runtime: its command line,
//! its commands and its reports.
//!
//! Start reading at [`run`], which leads to one file per command in
//! [`commands`]. The command line itself is [`cli`]; [`report`] formats the
//! results of a run.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod error;
pub mod probe;
pub mod profile;
mod progress;
pub mod receiving;
pub mod recorder;
mod remedies;
pub mod report;
mod rights;
pub mod signals;
pub mod simulate;
mod steps;
pub mod table;
mod whole_file;

use std::process::ExitCode;

use clap::CommandFactory;

pub use cli::{Cli, Command, Globals};
pub use error::Error;

/// Runs the command of the command line.
///
/// # Errors
/// Any error of the command; [`Error::exit_code`] returns the exit code.
pub fn run(cli: &Cli) -> Result<ExitCode, Error> {
    let globals = &cli.globals;
    match &cli.command {
        Command::Exec(args) => commands::exec::run(args, globals),
        Command::Generate(args) => commands::generate::run(args, globals),
        Command::Run(args) => commands::run::run(args, globals),
        Command::Receive(args) => commands::receive::run(args, globals),
        Command::Replay(args) => commands::replay::run(args, globals),
        Command::Simulate(args) => commands::simulate::run(args, globals),
        Command::Ctl(args) => commands::ctl::run(args, globals),
        Command::Check(args) => commands::check::run(args, globals),
        Command::Schema(args) => commands::schema::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Plot(args) => commands::plot::run(args, globals),
        Command::Bench(args) => bench::run(args, globals),
        Command::Models(args) => commands::models::run(args, globals),
        Command::Preset(args) => commands::preset::run(args, globals),
        Command::Doctor(args) => commands::doctor::run(args, globals),
        Command::Completions(args) => commands::completions::run(args, Cli::command()),
        Command::Man(args) => commands::man::run(args, Cli::command()),
    }
}
