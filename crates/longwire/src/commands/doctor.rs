//! `longwire doctor`: what this machine allows and what spoils accuracy.

use std::process::ExitCode;

use clap::Args;

use crate::{Error, Globals};

/// What `doctor` takes.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

/// Looks at the machine.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_args: &DoctorArgs, _globals: &Globals) -> Result<ExitCode, Error> {
    Ok(ExitCode::SUCCESS)
}
