//! Runs the fuzz targets, and the tests of longwire-io under loom and AddressSanitizer.

use std::process::Command;
use std::{env, fs, thread};

use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{Outcome, Runner, cargo, entries, locked, root, run, succeeds, target_dir};

/// Builds the targets, then runs them with the committed seeds, one per core.
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
                // Collect first, so that every thread is joined.
                let outcomes: Vec<Outcome> = outcomes.collect();
                outcomes.into_iter().collect()
            })
        });
    }
}

/// Skips the step if the targets cannot be fuzzed on this machine.
fn needs_fuzz() -> Outcome {
    let what = if !has_nightly() {
        "no nightly toolchain"
    } else if !succeeds("cargo", &["+nightly", "fuzz", "--version"]) {
        "needs cargo-fuzz: cargo install cargo-fuzz --locked"
    } else {
        return Ok(());
    };
    Err(Skipped(format!("{what}; the tests run the seeds")))
}

/// Returns the command `cargo fuzz` with these arguments.
fn fuzz(arguments: &[&str]) -> Command {
    let mut command = cargo(["+nightly", "fuzz"]);
    command.arg(arguments[0]).arg("--target-dir");
    command
        .arg(target_dir().join("fuzz"))
        .args(&arguments[1..])
        // cargo-fuzz combines this flag with its own.
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
    let entries = entries(&root().join("fuzz/fuzz_targets"));
    let names = entries.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The crate tested under loom and AddressSanitizer.
const CRATE: &str = "longwire-io";

/// Maximum number of preemptions per interleaving in loom, unless set in the environment. According
/// to loom's authors, two or three find most faults; without a limit, the models run too long.
const PREEMPTIONS: (&str, &str) = ("LOOM_MAX_PREEMPTIONS", "3");

/// Runs the tests named `loom*` with every interleaving, up to a number of preemptions.
pub fn loom(runner: &mut Runner) {
    runner.step("loom", || {
        let tests = format!("crates/{CRATE}/tests");
        let mut names = entries(&root().join(&tests)).map(|entry| entry.file_name());
        if !names.any(|name| name.to_string_lossy().starts_with("loom")) {
            return Err(Failed(format!("no {tests}/loom*.rs")));
        }
        // Use the features of the whole workspace, so that all steps share the builds of other
        // crates.
        let feature = format!("{CRATE}/loom");
        let (variable, default) = PREEMPTIONS;
        let preemptions = env::var(variable).unwrap_or(default.to_owned());
        let mut command = cargo(["test", "--workspace", "--features", &feature]);
        command.args(["--test", "loom*"]).args(locked());
        command.env(variable, preemptions);
        run(command)
    });
}

/// Runs the tests of the crate with every memory access checked.
pub fn asan(runner: &mut Runner) {
    runner.step("asan", || {
        if !has_nightly() {
            return Err(Skipped("no nightly toolchain".to_owned()));
        }
        let Some(host) = host() else {
            return Err(Failed("rustc does not report its host target".to_owned()));
        };
        let mut command = cargo(["+nightly", "test", "--package", CRATE, "--lib", "--tests"]);
        command
            // With an explicit target, build scripts and macros are not instrumented.
            .args(["--target", &host])
            .args(locked())
            .env("RUSTFLAGS", "-Zsanitizer=address -Zthreads=2")
            .env("CARGO_TARGET_DIR", target_dir().join("asan"));
        run(command)
    });
}

/// Returns whether rustup has a nightly toolchain.
pub fn has_nightly() -> bool {
    succeeds("cargo", &["+nightly", "--version"])
}

/// Returns the default target of rustc.
fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
}
