//! Runs every test in a separate process. Lists the slowest tests, the result of each test program,
//! and the failed tests.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::hint;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

mod pool;
mod programs;

use crate::leftovers;
use crate::runner::Shortfall::Failed;
use crate::runner::{Outcome, Runner, cargo, is_ci, locked, target_dir};
use crate::{tiers, tools};
use pool::{Done, Ending};
use programs::{Group, Job, TestProgram};

/// Environment variable with the file to which skipped tests append the reasons.
const SKIPPED: &str = "LONGWIRE_SKIPPED";

/// Environment variable with the number of concurrent timed tests.
const THREADS: &str = "RUST_TEST_THREADS";

/// Name prefix of the slowest tests, which start first if no times have been recorded.
const BOOK: &str = "longwire::alone::book::";

/// Number of slowest tests listed.
const SLOWEST: usize = 15;

/// Returns the number of cores and of concurrent timed tests: four per core, because most of them
/// sleep or wait for programs. With more, the tests would delay each other's frames.
fn workers() -> (usize, usize) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let chosen = env::var(THREADS).ok().and_then(|text| text.parse().ok());
    (cores, chosen.unwrap_or(4 * cores))
}

/// Runs the tests that read a clock `rounds` times with one busy loop per core. Records the result.
pub fn run_busy(runner: &mut Runner, rounds: u32) {
    let start = runner.len();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..workers().0 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        for round in 1..=rounds {
            println!("\n==== round {round} of {rounds}");
            run(runner, |job| job.group != Group::Timeless);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    tiers::record(runner, "busy", rounds, start);
}

/// Builds and runs every test.
pub fn run_step(runner: &mut Runner) {
    run(runner, |_| true);
}

/// Builds all tests, and runs the chosen ones.
fn run(runner: &mut Runner, is_chosen: fn(&Job) -> bool) {
    let mut jobs = Vec::new();
    runner.step("tests: build", || {
        let built = build().map_err(|error| Failed(error.to_string()))?;
        jobs = built.ok_or_else(|| Failed("they do not build".to_owned()))?;
        Ok(())
    });
    jobs.retain(is_chosen);
    if !jobs.is_empty() {
        runner.step("tests", || run_all(jobs));
    }
}

/// Builds the tests; `None` if that fails.
fn build() -> io::Result<Option<Vec<Job>>> {
    let Some(programs) = TestProgram::build_all()? else {
        return Ok(None);
    };
    let mut jobs = vec![programs::document_tests()];
    for program in &programs {
        jobs.extend(program.jobs()?);
    }
    let times = read_times(&fs::read_to_string(times_file()).unwrap_or_default());
    // Start unknown tests first, then the slowest ones of the last run, so that no slow test starts
    // last.
    let time = |job: &Job| times.get(&job.name).copied().unwrap_or(u64::MAX);
    let is_book = |job: &Job| job.name.starts_with(BOOK);
    jobs.sort_by_key(|job| Reverse((time(job), is_book(job))));
    Ok(Some(jobs))
}

fn run_all(mut jobs: Vec<Job>) -> Outcome {
    let before = leftovers::look();
    let skipped = skipped_file();
    for job in &mut jobs {
        job.command.env(SKIPPED, &skipped);
    }
    let (cores, threads) = workers();
    let mut done = pool::run(jobs, threads, cores);
    done.sort_by_key(|done| Reverse(done.time));
    let _ = fs::write(times_file(), written_times(&done));
    let left = leftovers::compare(&before);
    list_skipped(&fs::read_to_string(&skipped).unwrap_or_default());
    print!("{}", closing(&done));
    let failed = done.iter().filter(|done| done.ending == Ending::Failed);
    match (failed.count(), left) {
        // On a shared machine, leftovers may belong to another user.
        (0, Err(Failed(what))) if !is_ci() => {
            eprintln!("{what}");
            Ok(())
        }
        (0, left) => left,
        (failed, _) => Err(Failed(format!("{failed} of {}", done.len()))),
    }
}

/// Runs the tests selected by `chosen`, which are arguments of `cargo test`.
pub fn run_chosen(chosen: &[&str]) -> ExitCode {
    let skipped = skipped_file();
    let mut command = cargo(["test", "--no-fail-fast"]);
    if !chosen
        .iter()
        .any(|word| ["-p", "--package", "--workspace"].contains(word))
    {
        command.arg("--workspace");
    }
    command.args(locked()).args(chosen).env(SKIPPED, &skipped);
    if env::var_os(THREADS).is_none() {
        command.env(THREADS, workers().1.to_string());
    }
    let passed = command.status().is_ok_and(|status| status.success());
    list_skipped(&fs::read_to_string(&skipped).unwrap_or_default());
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Removes the old file of skip reasons and returns its path.
fn skipped_file() -> PathBuf {
    let file = target_dir().join("skipped-tests");
    let _ = fs::remove_file(&file);
    file
}

/// Returns the path of the times recorded by the last run.
fn times_file() -> PathBuf {
    target_dir().join("test-times.tsv")
}

fn written_times(done: &[Done]) -> String {
    let mut text = String::new();
    for Done { name, time, .. } in done {
        let _ = writeln!(text, "{}\t{name}", time.as_millis());
    }
    text
}

/// Parses the milliseconds of each test.
fn read_times(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter_map(|line| {
        let (time, name) = line.split_once('\t')?;
        Some((name.to_owned(), time.parse().ok()?))
    });
    rows.collect()
}

/// Returns the closing text: the slowest tests, all suites, and the failed tests.
fn closing(done: &[Done]) -> String {
    let mut text = format!("\n==== slowest of {} tests\n", done.len());
    for Done { name, time, .. } in done.iter().take(SLOWEST) {
        let _ = writeln!(text, "{:>7.1} s  {name}", time.as_secs_f64());
    }
    let mut suites: BTreeMap<&str, Vec<&Done>> = BTreeMap::new();
    for one in done.iter().filter(|done| !done.suite.is_empty()) {
        suites.entry(&one.suite).or_default().push(one);
    }
    text += "\n==== all suites\n";
    for (suite, done) in suites {
        let _ = writeln!(text, "{suite}\n{}", result(&done));
    }
    done.iter().for_each(|done| text += &done.closings);
    let failed = |done: &&Done| done.ending == Ending::Failed;
    if done.iter().any(|done| failed(&done)) {
        text += "\n==== failed\n";
    }
    for Done { name, .. } in done.iter().filter(failed) {
        let _ = writeln!(text, "{name}");
    }
    text
}

/// Returns the closing line of a suite in libtest's format.
fn result(done: &[&Done]) -> String {
    let count = |ending| done.iter().filter(|done| done.ending == ending).count();
    let (passed, failed) = (count(Ending::Passed), count(Ending::Failed));
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let time: Duration = done.iter().map(|done| done.time).sum();
    format!(
        "test result: {word}. {passed} passed; {failed} failed; {} ignored; 0 measured; \
         0 filtered out; finished in {:.2}s",
        count(Ending::Ignored),
        time.as_secs_f64()
    )
}

/// Prints the reasons for skipped tests, and the command that installs missing programs.
fn list_skipped(reasons: &str) {
    let mut counts = BTreeMap::new();
    for reason in reasons.lines() {
        *counts.entry(reason).or_insert(0) += 1;
    }
    if counts.is_empty() {
        return;
    }
    println!("\n==== skipped here, run by continuous integration");
    for (reason, count) in counts {
        println!("{count:>4} x {reason}");
    }
    if let Some(command) = tools::remedy() {
        println!("to run those that need programs:\n  {command}");
    }
    if !tools::is_root() {
        println!("to run those that need privileges, run this command as root");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &str, time_ms: u64, ending: Ending) -> Done {
        Done {
            name: name.to_owned(),
            suite: "     Running tests/it/main.rs (target/it)".to_owned(),
            time: Duration::from_millis(time_ms),
            ending,
            closings: String::new(),
        }
    }

    #[test]
    fn the_closing_has_counts_and_the_names_of_failed_tests() {
        let done = [
            done("a::slow", 2_500, Ending::Passed),
            done("a::bad", 250, Ending::Failed),
            done("a::left_out", 0, Ending::Ignored),
        ];
        let text = closing(&done);
        let line = "(target/it)\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; \
                    0 filtered out; finished in 2.75s\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("2.5 s  a::slow\n"), "{text}");
        assert!(text.ends_with("\n==== failed\na::bad\n"), "{text}");
        let times = read_times(&written_times(&done));
        assert_eq!(times.get("a::slow"), Some(&2_500));
        assert_eq!(times.len(), 3);
    }
}
