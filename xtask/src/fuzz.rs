//! Runs the fuzz targets.

use std::fs;
use std::process::Command;
use std::thread;

use crate::memory::has_nightly;
use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{Outcome, Runner, cargo, root, run, succeeds, target_dir};

/// Builds the targets, then runs them from the committed seeds, one per core.
pub fn run_targets(runner: &mut Runner) {
    let seconds = runner.seconds;
    runner.step("fuzz: build", || {
        needs_fuzz()?;
        run(fuzz(&["build"]))
    });
    if needs_fuzz().is_err() {
        return;
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for targets in targets().chunks(cores) {
        runner.step(&format!("fuzz: {}", targets.join(", ")), || {
            thread::scope(|scope| {
                let start = |target: &String| {
                    let target = target.clone();
                    scope.spawn(move || run_target(&target, seconds))
                };
                let running: Vec<_> = targets.iter().map(start).collect();
                let outcomes = running.into_iter().map(|thread| match thread.join() {
                    Ok(outcome) => outcome,
                    Err(_) => Err(Failed("it panicked".to_owned())),
                });
                // Joins every thread.
                let outcomes: Vec<Outcome> = outcomes.collect();
                outcomes.into_iter().collect()
            })
        });
    }
}

/// Skips the step where the targets cannot be fuzzed.
fn needs_fuzz() -> Outcome {
    let what = if !has_nightly() {
        "no nightly toolchain"
    } else if !succeeds("cargo", &["+nightly", "fuzz", "--version"]) {
        "needs cargo-fuzz: cargo install cargo-fuzz --locked"
    } else {
        return Ok(());
    };
    Err(Skipped(format!("{what}; its seeds are run as a test")))
}

/// Returns the command `cargo fuzz` with these arguments.
fn fuzz(arguments: &[&str]) -> Command {
    let mut command = cargo(["+nightly", "fuzz"]);
    command.arg(arguments[0]).arg("--target-dir");
    command
        .arg(target_dir().join("fuzz"))
        .args(&arguments[1..])
        // cargo-fuzz adds these to its own flags.
        .env("RUSTFLAGS", "-Zthreads=2");
    command
}

fn run_target(target: &str, seconds: u32) -> Outcome {
    // libFuzzer writes new inputs to the first folder only.
    let corpus = format!("fuzz/corpus/{target}");
    if let Err(error) = fs::create_dir_all(root().join(&corpus)) {
        return Err(Failed(format!("cannot make {corpus}: {error}")));
    }
    let time = format!("-max_total_time={seconds}");
    let seeds = format!("fuzz/seeds/{target}");
    let options = [&time, "-verbosity=0", "-print_final_stats=1"];
    run(fuzz(
        &[&["run", target, &corpus, &seeds, "--"], &options[..]].concat(),
    ))
}

/// Returns the names of the targets, `fuzz/fuzz_targets/NAME.rs`.
fn targets() -> Vec<String> {
    let entries = fs::read_dir(root().join("fuzz/fuzz_targets"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}
