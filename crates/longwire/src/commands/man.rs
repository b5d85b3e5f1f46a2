//! `longwire man`: generates manual pages from the command line's definition.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};

use crate::Error;

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longwire man | man -l -                read the page of the program
  longwire man /usr/local/share/man/man1 install all pages")]
pub struct ManArgs {
    /// Directory for one page per command; default: print the page of the program
    pub dir: Option<PathBuf>,
}

/// Writes the manual pages of a command line.
///
/// # Errors
/// If the directory or stdout cannot be written.
pub fn run(args: &ManArgs, command: Command) -> Result<ExitCode, Error> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(ExitCode::SUCCESS);
    };
    let write = || {
        std::fs::create_dir_all(dir)?;
        // Pages such as `help help` would be empty.
        clap_mangen::generate_to(command.disable_help_subcommand(true), dir)
    };
    write().map_err(Error::file(dir, "cannot write manual pages"))?;
    Ok(ExitCode::SUCCESS)
}
