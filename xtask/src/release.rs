//! Release checks: packages, the first command in the README, the examples and the soak.
//! `tools/packager` builds the packages; it is a separate program, so that `cargo xtask` needs no
//! dependencies.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::runner::Shortfall::Failed;
use crate::runner::{
    Outcome, Runner, built, cargo, entries, limited, root, run, run_all, workspace,
};

/// Runs the first command in the README.
pub fn readme(runner: &mut Runner) {
    runner.step("the README's first command", first_command);
}

fn first_command() -> Outcome {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let mut lines = readme.lines();
    let Some(arguments) = lines.find_map(|line| line.strip_prefix("cargo run --release ")) else {
        let what = "README.md has no line with `cargo run --release …`";
        return Err(Failed(what.to_owned()));
    };
    let command = ["run", "--release"].into_iter();
    run(cargo(command.chain(arguments.split_whitespace())))
}

/// Runs all examples of the crates.
pub fn examples(runner: &mut Runner) {
    runner.step("examples", run_examples);
}

fn run_examples() -> Outcome {
    let crates = entries(&root().join("crates"));
    let files = crates.flat_map(|entry| entries(&entry.path().join("examples")));
    let names = files.filter_map(|file| Some(file.path().file_stem()?.to_owned()));
    let mut names: Vec<OsString> = names.collect();
    names.sort();
    if names.is_empty() {
        return Err(Failed("no crates/*/examples/*.rs".to_owned()));
    }
    let mut build = workspace("build");
    build.arg("--examples");
    let program = |name| limited(&built(&Path::new("examples").join(name)));
    run_all([build].into_iter().chain(names.iter().map(program)))
}

/// Carries TCP over a continually changing link, for the runner's number of seconds.
pub fn soak(runner: &mut Runner) {
    let mut command = cargo(["test", "--release", "--package", "longwire"]);
    command
        .args(["--test", "soak", "--", "--nocapture"])
        .env("LONGWIRE_SOAK_SECONDS", runner.seconds.to_string());
    runner.step("soak", || run(command));
}

/// Builds and tests packages. Tests with Debian and containers need root.
pub fn packages(runner: &mut Runner) {
    runner.step("packages", || run(command("package")));
    runner.step("packages: tests", || run(command("test")));
}

pub fn build_packages(arguments: &[&str]) -> ExitCode {
    packager("package", arguments)
}

pub fn test_packages(arguments: &[&str]) -> ExitCode {
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
    let mut command = cargo(["run", "--quiet", "--package", "longwire-packager"]);
    command.args(["--", task]);
    command
}
