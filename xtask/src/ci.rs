//! The checks of every commit in addition to `cargo xtask test`.

use crate::runner::{Outcome, Runner, cargo, locked, run, run_all, target_dir};
use crate::{book, deny, kube, page};

/// The manifest of the fuzz targets, which are a separate workspace.
pub const FUZZ_MANIFEST: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// Runs every step, those that fail soonest first.
pub fn run_steps(runner: &mut Runner) {
    runner.step("format", format);
    deny::run_steps(runner);
    page::check(runner);
    runner.step("clippy", || clippy(&["--workspace"]));
    runner.step("docs", docs);
    book::check(runner);
}

/// Checks the rules of CONTRIBUTING.md that a program can check.
pub fn style(runner: &mut Runner) {
    runner.step("style", || {
        let mut command = cargo(["test", "--package", "xtask", "--test", "style"]);
        command.args(locked());
        run(command)
    });
}

fn format() -> Outcome {
    run_all([
        cargo(["fmt", "--all", "--check"]),
        cargo(["fmt", "--check"].into_iter().chain(FUZZ_MANIFEST)),
        cargo(["fmt", "--check"].into_iter().chain(kube::MANIFEST)),
    ])
}

/// Runs clippy on a workspace.
pub fn clippy(workspace: &[&'static str]) -> Outcome {
    let mut command = cargo(["clippy", "--all-targets", "--keep-going"]);
    command
        .args(workspace)
        .args(locked())
        .args(["--", "--deny", "warnings"])
        // The workspaces share the checked dependencies.
        .env("CARGO_TARGET_DIR", target_dir());
    run(command)
}

fn docs() -> Outcome {
    let mut command = cargo(["doc", "--workspace", "--no-deps"]);
    command
        .args(locked())
        .env("RUSTDOCFLAGS", "--deny warnings");
    run(command)
}
