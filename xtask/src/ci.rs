//! Everything that continuous integration checks besides `cargo xtask test`.

use std::fs;
use std::process::Command;

use crate::runner::{Outcome, Runner, cargo, locked, root, run, run_all, target_dir};
use crate::{bench, book, deny, fuzz, leftovers, memory};

/// Seconds that each fuzz target gets.
const FUZZ_SECONDS: u32 = 5;

/// The fuzz targets are a workspace of their own.
pub const FUZZ_MANIFEST: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// Every step, those that fail soonest first.
pub fn run_steps(runner: &mut Runner) {
    let before = leftovers::look();
    runner.step("format", format);
    style(runner);
    deny::run_steps(runner);
    runner.step("clippy", clippy);
    runner.step("docs", docs);
    memory::loom(runner);
    memory::asan(runner);
    book::run_steps(runner);
    runner.step("probe", || probe(false));
    bench::run_tiny(runner);
    fuzz::run_targets(runner, FUZZ_SECONDS);
    runner.step("nothing left behind", || leftovers::compare(&before));
}

/// The rules of CONTRIBUTING.md that a program can check.
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
    ])
}

fn clippy() -> Outcome {
    let clippy = |which: &[&'static str]| -> Command {
        let mut command = cargo(["clippy", "--all-targets", "--keep-going"]);
        command
            .args(which)
            .args(locked())
            .args(["--", "--deny", "warnings"]);
        command
    };
    let mut fuzz = clippy(&FUZZ_MANIFEST);
    // Dependencies are checked once for both workspaces.
    fuzz.env("CARGO_TARGET_DIR", target_dir());
    run_all([clippy(&["--workspace"]), fuzz])
}

fn docs() -> Outcome {
    let mut command = cargo(["doc", "--workspace", "--no-deps"]);
    command
        .args(locked())
        .env("RUSTDOCFLAGS", "--deny warnings");
    run(command)
}

/// The README's first command, but for `--release`: the build that the tests need
/// does the same. `cargo xtask long` runs the command as it stands there.
pub fn probe(release: bool) -> Outcome {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let command = readme
        .lines()
        .find_map(|line| line.strip_prefix("cargo run --release "));
    match command {
        Some(arguments) => run(cargo(
            ["run"]
                .into_iter()
                .chain(release.then_some("--release"))
                .chain(arguments.split_whitespace()),
        )),
        None => Outcome::Failed("README.md has no line with `cargo run --release …`".to_owned()),
    }
}
