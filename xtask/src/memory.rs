//! Checks of unsafe code and of memory shared between threads: loom and
//! AddressSanitizer.

use std::env;
use std::fs;
use std::process::Command;

use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{Runner, cargo, locked, root, run, succeeds, target_dir};

/// The crate with such code.
const CRATE: &str = "longwire-io";

/// Maximum preemptions per interleaving in loom, unless set in the environment. Two or
/// three find most faults, according to its authors; without a limit the models run too
/// long.
const PREEMPTIONS: (&str, &str) = ("LOOM_MAX_PREEMPTIONS", "3");

/// Runs the tests named `loom*` with every interleaving up to a number of preemptions.
pub fn loom(runner: &mut Runner) {
    runner.step("loom", || {
        let tests = format!("crates/{CRATE}/tests");
        let entries = fs::read_dir(root().join(&tests))
            .into_iter()
            .flatten()
            .flatten();
        if !entries
            .map(|entry| entry.file_name())
            .any(|name| name.to_string_lossy().starts_with("loom"))
        {
            return Err(Failed(format!("no {tests}/loom*.rs")));
        }
        // With the features of the whole workspace, so that other crates are built once
        // for all steps.
        let feature = format!("{CRATE}/loom");
        let mut command = cargo(["test", "--workspace", "--features", &feature]);
        command.args(["--test", "loom*"]).args(locked()).env(
            PREEMPTIONS.0,
            env::var(PREEMPTIONS.0).unwrap_or(PREEMPTIONS.1.to_owned()),
        );
        run(command)
    });
}

/// Runs the crate's tests with every memory access checked.
pub fn asan(runner: &mut Runner) {
    runner.step("asan", || {
        if !has_nightly() {
            return Err(Skipped("no nightly toolchain".to_owned()));
        }
        let Some(host) = host() else {
            return Err(Failed("rustc does not say what it builds for".to_owned()));
        };
        let mut command = cargo(["+nightly", "test", "--package", CRATE, "--lib", "--tests"]);
        command
            // With an explicit target, build scripts and macros are not sanitised.
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
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}
