//! The fuzz targets, each for a while.

use std::fs;

use crate::memory::has_nightly;
use crate::runner::{Outcome, Runner, cargo, root, run, succeeds, target_dir};

/// Runs every target for `seconds`, beginning with the committed seeds.
pub fn run_targets(runner: &mut Runner, seconds: u32) {
    for target in targets() {
        runner.step(&format!("fuzz {target}"), || fuzz(&target, seconds));
    }
}

fn fuzz(target: &str, seconds: u32) -> Outcome {
    if !has_nightly() {
        return Outcome::Skipped("no nightly toolchain; its seeds are run as a test".to_owned());
    }
    if !succeeds("cargo", &["+nightly", "fuzz", "--version"]) {
        let how = "needs cargo-fuzz: cargo install cargo-fuzz --locked";
        return Outcome::Skipped(format!("{how}; its seeds are run as a test"));
    }
    // New inputs go to the first folder, the seeds are only read.
    let corpus = format!("fuzz/corpus/{target}");
    if let Err(error) = fs::create_dir_all(root().join(&corpus)) {
        return Outcome::Failed(format!("cannot make {corpus}: {error}"));
    }
    let mut command = cargo(["+nightly", "fuzz", "run", "--target-dir"]);
    command
        .arg(target_dir().join("fuzz"))
        .args([target, &corpus, &format!("fuzz/seeds/{target}"), "--"])
        .args([
            &format!("-max_total_time={seconds}"),
            "-verbosity=0",
            "-print_final_stats=1",
        ]);
    run(command)
}

/// The names of the targets, `fuzz/fuzz_targets/NAME.rs`.
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
