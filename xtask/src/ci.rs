//! Format, clippy and documentation.

use crate::kube;
use crate::runner::{Outcome, Runner, cargo, locked, run, run_all, target_dir};

/// The manifest of the fuzz targets, a separate workspace.
pub const FUZZ_MANIFEST: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// Checks the format of every workspace.
pub fn format(runner: &mut Runner) {
    runner.step("format", check_format);
}

/// Runs clippy on the workspace.
pub fn clippy_workspace(runner: &mut Runner) {
    runner.step("clippy", || clippy(&["--workspace"]));
}

/// Runs clippy on the fuzz targets.
pub fn clippy_fuzz(runner: &mut Runner) {
    runner.step("clippy: fuzz targets", || clippy(&FUZZ_MANIFEST));
}

/// Checks the rules of CONTRIBUTING.md that a program can check.
pub fn style(runner: &mut Runner) {
    runner.step("style", || {
        let mut command = cargo(["test", "--package", "xtask", "--test", "style"]);
        command.args(locked());
        run(command)
    });
}

/// Builds the documentation of the crates.
pub fn docs(runner: &mut Runner) {
    runner.step("docs", || {
        let mut command = cargo(["doc", "--workspace", "--no-deps"]);
        command
            .args(locked())
            .env("RUSTDOCFLAGS", "--deny warnings");
        run(command)
    });
}

fn check_format() -> Outcome {
    run_all([
        cargo(["fmt", "--all", "--check"]),
        cargo(["fmt", "--check"].into_iter().chain(FUZZ_MANIFEST)),
        cargo(["fmt", "--check"].into_iter().chain(kube::MANIFEST)),
    ])
}

fn clippy(workspace: &[&'static str]) -> Outcome {
    let mut command = cargo(["clippy", "--all-targets", "--keep-going"]);
    command
        .args(workspace)
        .args(locked())
        .args(["--", "--deny", "warnings"])
        // The workspaces share checked dependencies.
        .env("CARGO_TARGET_DIR", target_dir());
    run(command)
}
