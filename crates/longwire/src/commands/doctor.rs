//! `longwire doctor`: reports what this machine supports and what limits its accuracy.

use std::io;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::cli::Paint;
use crate::doctor::{self, Group, Status};
use crate::error::EXIT_FAILED;
use crate::report::output::print_json;
use crate::{Error, Globals};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Checks and measures this machine for about a second. Needs no root; missing privileges are
among the findings. The exit code is 1 if a check fails.

Examples:
  longwire doctor
  sudo longwire doctor     as root
  longwire doctor -q       problems only
  longwire doctor --json   as JSON")]
pub struct DoctorArgs {}

#[derive(Serialize)]
struct ReportJson {
    worst: Status,
    groups: Vec<Group>,
}

/// Examines the machine.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_args: &DoctorArgs, globals: &Globals) -> Result<ExitCode, Error> {
    // Skip the trial if the path of this executable is unknown.
    let program = std::env::current_exe().ok();
    let groups = doctor::examine(program.as_deref());
    let worst = doctor::worst(&groups);
    if globals.json {
        print_json(&ReportJson { worst, groups })?;
    } else {
        let paint = Paint::new(globals, &io::stdout());
        doctor::write(&mut io::stdout().lock(), &groups, globals.quiet, paint)?;
    }
    Ok(match worst {
        Status::Fail => ExitCode::from(EXIT_FAILED),
        _ => ExitCode::SUCCESS,
    })
}
