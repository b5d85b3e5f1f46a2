//! The checks that take too long for every commit: packages, sanitizers, fuzzing, clients,
//! clusters. Their outcomes go to `docs/long-runs.md`.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::ci::{FUZZ_MANIFEST, clippy};
use crate::runner::{Outcome, Runner, built, cargo, limited, root, run, run_all, workspace};
use crate::{
    api, bench, book, clients, cni, fuzz, kube, leftovers, memory, package, page, python, tools,
};

/// Default duration of each fuzz target and of the soak, in seconds.
pub const SECONDS_DEFAULT: u32 = 5;

/// The document that results are appended to.
const RECORD: &str = "docs/long-runs.md";

/// Runs every step, each fuzz target and the soak for `seconds`, and records the outcomes.
pub fn run_steps(runner: &mut Runner, seconds: u32) {
    tools::install(runner, true);
    let before = leftovers::look();
    runner.step("the README's first command", probe);
    package::run_steps(runner);
    runner.step("clippy: fuzz targets", || clippy(&FUZZ_MANIFEST));
    memory::loom(runner);
    memory::asan(runner);
    book::run_steps(runner);
    runner.step("examples", examples);
    bench::run_tiny(runner);
    page::in_browser(runner);
    python::run_steps(runner);
    clients::run_steps(runner);
    cni::run_steps(runner);
    kube::run_steps(runner);
    api::run_steps(runner);
    fuzz::run_targets(runner, seconds);
    runner.step("soak", || soak(seconds));
    runner.step("nothing left behind", || leftovers::compare(&before));
    let outcomes: Vec<String> = runner.outcomes().collect();
    runner.step("record", || record(seconds, &outcomes));
}

/// Runs the README's first command.
fn probe() -> Outcome {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let command = readme
        .lines()
        .find_map(|line| line.strip_prefix("cargo run --release "));
    let Some(arguments) = command else {
        return Outcome::Failed("README.md has no line with `cargo run --release …`".to_owned());
    };
    let command = ["run", "--release"].into_iter();
    run(cargo(command.chain(arguments.split_whitespace())))
}

/// Runs every example of the crates.
fn examples() -> Outcome {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let crates = entries(&root().join("crates"));
    let files = crates.flat_map(|entry| entries(&entry.path().join("examples")));
    let mut names: Vec<OsString> = files
        .filter_map(|file| Some(file.path().file_stem()?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        return Outcome::Failed("no crates/*/examples/*.rs".to_owned());
    }
    let mut build = workspace("build");
    build.arg("--examples");
    let program = |name| limited(&built(&Path::new("examples").join(name)));
    run_all([build].into_iter().chain(names.iter().map(program)))
}

fn soak(seconds: u32) -> Outcome {
    let mut command = cargo(["test", "--release", "--package", "longwire"]);
    command
        .args(["--test", "soak", "--", "--nocapture"])
        .env("LONGWIRE_SOAK_SECONDS", seconds.to_string());
    run(command)
}

/// Appends a row for each step to [`RECORD`].
fn record(seconds: u32, outcomes: &[String]) -> Outcome {
    let printed = |program: &str, arguments: &[&str]| -> String {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(root())
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().trim().to_owned()
    };
    let date = printed("date", &["-u", "+%F"]);
    let commit = printed("git", &["rev-parse", "--short", "HEAD"]);
    let rows: String = outcomes
        .iter()
        .map(|outcome| format!("| {date} | {commit} | {seconds} | {outcome} |\n"))
        .collect();
    let path = root().join(RECORD);
    let written = fs::metadata(&path)
        .and_then(|_| OpenOptions::new().append(true).open(&path))
        .and_then(|mut file| file.write_all(rows.as_bytes()));
    match written {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("cannot write {RECORD}: {error}")),
    }
}
