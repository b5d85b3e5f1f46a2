//! Work that takes too long for continuous integration: fuzzing and a soak.
//! The date and the result of each go to `docs/long-runs.md`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;

use crate::runner::{Outcome, Runner, cargo, root, run};
use crate::{api, ci, fuzz};

/// Default duration of each part, in seconds.
pub const SECONDS_DEFAULT: u32 = 600;

/// The document that results are appended to.
const RECORD: &str = "docs/long-runs.md";

/// Runs each fuzz target and the soak for `seconds`, and records the results.
pub fn run_steps(runner: &mut Runner, seconds: u32) {
    runner.step("the README's first command", || ci::probe(true));
    fuzz::run_targets(runner, seconds);
    runner.step("soak", || soak(seconds));
    api::run_steps(runner);
    let outcomes: Vec<String> = runner.outcomes().collect();
    runner.step("record", || record(seconds, &outcomes));
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
