//! Packages, built and tested by `tools/packager`, a separate program, so that `cargo
//! xtask` needs no dependencies.

use std::process::{Command, ExitCode};

use crate::runner::{Runner, cargo, run};

/// Builds and tests packages. Debian and containers need root.
pub fn run_steps(runner: &mut Runner) {
    runner.step("packages", || run(command("package")));
    runner.step("packages: tests", || run(command("test")));
}

/// Builds packages.
pub fn build(arguments: &[&str]) -> ExitCode {
    packager("package", arguments)
}

/// Tests installed packages.
pub fn test(arguments: &[&str]) -> ExitCode {
    packager("test", arguments)
}

fn packager(task: &str, arguments: &[&str]) -> ExitCode {
    match command(task).args(arguments).status() {
        Ok(status) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command(task: &str) -> Command {
    cargo([
        "run",
        "--quiet",
        "--package",
        "longwire-packager",
        "--",
        task,
    ])
}
