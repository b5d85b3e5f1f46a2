//! Packages: `tools/packager` builds and tests them. It is a separate program, so that
//! `cargo xtask` needs no dependencies.

use std::process::ExitCode;

use crate::runner::cargo;

/// Builds packages.
pub fn build(arguments: &[&str]) -> ExitCode {
    packager("package", arguments)
}

/// Tests the packages where they are installed.
pub fn test(arguments: &[&str]) -> ExitCode {
    packager("test", arguments)
}

fn packager(task: &str, arguments: &[&str]) -> ExitCode {
    let mut command = cargo([
        "run",
        "--quiet",
        "--package",
        "longwire-packager",
        "--",
        task,
    ]);
    match command.args(arguments).status() {
        Ok(status) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
