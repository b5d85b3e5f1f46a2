//! Runs every test, and repeats the closing lines of all test programs at the
//! end.

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::process::{Command, ExitCode};
use std::thread;

use crate::leftovers;
use crate::runner::{Outcome, cargo, is_ci, locked};

/// Beginnings of cargo's line before a test program, and of the program's closing
/// line.
const SUITE_STARTS: [&str; 2] = ["Running ", "Doc-tests "];
const SUITE_ENDS: &str = "test result: ";

/// Number of tests that a test program runs at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Returns three for each core: many tests wait for programs or for time to pass.
fn threads() -> usize {
    3 * thread::available_parallelism().map_or(1, usize::from)
}

/// The suites of one run: headline and closing line.
type Closings = Vec<(String, String)>;

/// Runs the tests; `chosen` are further arguments of `cargo test`.
pub fn run(chosen: &[&str]) -> ExitCode {
    let before = leftovers::look();
    let mut workspace = cargo(["test", "--no-fail-fast"]);
    if !chosen
        .iter()
        .any(|word| ["-p", "--package", "--workspace"].contains(word))
    {
        workspace.arg("--workspace");
    }
    workspace.args(locked()).args(chosen);
    let mut commands = vec![workspace];
    if chosen.is_empty() {
        // Building takes as long as running: each has a separate time limit.
        let mut build = cargo(["test", "--no-run", "--workspace"]);
        build.args(locked());
        commands.insert(0, build);
    }
    let mut closings = Closings::new();
    let mut failed = false;
    for mut command in commands {
        if env::var_os(THREADS).is_none() {
            command.env(THREADS, threads().to_string());
        }
        match watch(command, &mut closings) {
            Ok(passed) => failed |= !passed,
            Err(error) => {
                eprintln!("cannot run the tests: {error}");
                failed = true;
            }
        }
    }
    if let Outcome::Failed(what) = leftovers::compare(&before) {
        eprintln!("\n{what}");
        // On a shared machine, another user may have made it.
        failed |= is_ci();
    }
    close(&closings);
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs one `cargo test`, and passes its output on. Cargo announces suites on
/// stderr and test programs report on stdout: one pipe keeps the two in order.
fn watch(mut command: Command, closings: &mut Closings) -> io::Result<bool> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds the write end of the pipe open.
    drop(command);
    pass_on(reader, closings)?;
    Ok(child.wait()?.success())
}

fn pass_on(reader: PipeReader, closings: &mut Closings) -> io::Result<()> {
    let mut suite = String::new();
    let mut out = io::stdout().lock();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(out, "{line}")?;
        let words = line.trim_start();
        if SUITE_STARTS.iter().any(|start| words.starts_with(start)) {
            suite = line;
        } else if words.starts_with(SUITE_ENDS) {
            closings.push((suite.clone(), line));
        }
    }
    out.flush()
}

/// Prints every suite that had a test again, so that one screen shows all.
fn close(closings: &Closings) {
    println!("\n==== all suites");
    for (suite, result) in closings.iter().filter(|(_, result)| !is_empty(result)) {
        println!("{suite}\n{result}");
    }
}

/// Returns whether a closing line belongs to a suite without tests.
fn is_empty(result: &str) -> bool {
    result.contains(". 0 passed; 0 failed; 0 ignored")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_suites_without_tests_are_left_out() {
        assert!(is_empty(
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"
        ));
        for kept in [
            "ok. 10 passed; 0 failed; 0 ignored",
            "FAILED. 0 passed; 1 failed",
        ] {
            assert!(!is_empty(&format!("{SUITE_ENDS}{kept}; 0 measured")));
        }
    }
}
