//! Runs every test, and repeats the names of failed ones and the closing lines of all test
//! programs at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::mem;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;

use crate::leftovers;
use crate::programs::{self, TestProgram};
use crate::runner::{Outcome, cargo, is_ci, locked, target_dir};
use crate::tools;

/// Beginnings of cargo's line before a test program, and of the program's closing
/// line.
const SUITE_STARTS: [&str; 2] = ["Running ", "Doc-tests "];
const SUITE_ENDS: &str = "test result: ";

/// Beginning and end of the line of a test that failed.
const TEST_STARTS: &str = "test ";
const TEST_FAILED: &str = " ... FAILED";

/// Names a file to which skipped tests append a line with their reason.
const SKIPPED: &str = "LONGWIRE_SKIPPED";

/// Number of tests that a test program runs at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Returns four for each core: most tests wait for programs or for time to pass, and more
/// of them delay each other's frames.
fn threads() -> usize {
    4 * thread::available_parallelism().map_or(1, usize::from)
}

/// Outcomes of the test programs of one run.
#[derive(Default)]
struct Suites {
    /// Headline and closing line of each.
    closings: Vec<(String, String)>,
    /// Names of the tests that failed.
    failed: BTreeSet<String>,
    /// Headline of the suite whose tests are running.
    open: String,
}

/// Runs the tests; `chosen` are further arguments of `cargo test`.
pub fn run(chosen: &[&str]) -> ExitCode {
    let before = leftovers::look();
    let skipped = target_dir().join("skipped-tests");
    let _ = fs::remove_file(&skipped);
    let context = Context {
        threads: env::var_os(THREADS).unwrap_or_else(|| threads().to_string().into()),
        skipped,
    };
    let (suites, mut failed) = if chosen.is_empty() {
        run_programs(&context)
    } else {
        run_chosen(chosen, &context)
    };
    if let Outcome::Failed(what) = leftovers::compare(&before) {
        eprintln!("\n{what}");
        // On a shared machine, another user may have made it.
        failed |= is_ci();
    }
    close(&suites);
    list_skipped(&fs::read_to_string(&context.skipped).unwrap_or_default());
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Environment of test programs.
struct Context {
    threads: OsString,
    /// File of the reasons of skipped tests.
    skipped: PathBuf,
}

impl Context {
    fn with(&self, mut command: Command) -> Command {
        command.env(SKIPPED, &self.skipped);
        command.env(THREADS, &self.threads);
        command
    }
}

/// Runs chosen tests; returns whether some failed.
fn run_chosen(chosen: &[&str], context: &Context) -> (Suites, bool) {
    let mut command = cargo(["test", "--no-fail-fast"]);
    if !chosen
        .iter()
        .any(|word| ["-p", "--package", "--workspace"].contains(word))
    {
        command.arg("--workspace");
    }
    command.args(locked()).args(chosen);
    let mut suites = Suites::default();
    let passed = watch(context.with(command), &mut suites, &mut io::stdout());
    (suites, !passed)
}

/// Runs all tests; returns whether some failed. Programs whose tests read no clock run
/// next to the others, in the time that these spend waiting.
fn run_programs(context: &Context) -> (Suites, bool) {
    let programs = match TestProgram::build_all() {
        Ok(Some(programs)) => programs,
        Ok(None) => return (Suites::default(), true),
        Err(error) => {
            eprintln!("cannot build the tests: {error}");
            return (Suites::default(), true);
        }
    };
    let (timeless, timed): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.is_timeless());
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut suites = Suites::default();
            let mut failed = false;
            let mut document_tests = programs::idle();
            document_tests.args(["cargo", "test", "--doc", "--workspace", "--no-fail-fast"]);
            document_tests.args(locked());
            let commands = timeless
                .iter()
                .map(|program| (program.title(), program.idle_command()));
            let commands = commands.chain([(String::new(), document_tests)]);
            for (title, command) in commands {
                let mut output = Vec::new();
                failed |= !watch_program(&title, context.with(command), &mut suites, &mut output);
                // In one piece: the other suites write line by line.
                let _ = io::stdout().lock().write_all(&output);
            }
            (suites, failed)
        });
        let mut suites = Suites::default();
        let mut failed = false;
        for program in timed {
            let command = context.with(program.command());
            let passed = watch_program(&program.title(), command, &mut suites, &mut io::stdout());
            failed |= !passed;
        }
        let (other, other_failed) = other.join().unwrap_or((Suites::default(), true));
        suites.add(other);
        (suites, failed | other_failed)
    })
}

/// Runs one test program under its headline.
fn watch_program(title: &str, command: Command, suites: &mut Suites, out: &mut impl Write) -> bool {
    let _ = suites.pass_on(title.as_bytes(), out);
    watch(command, suites, out)
}

/// Runs a command, and passes its output on; returns whether it succeeded.
fn watch(command: Command, suites: &mut Suites, out: &mut impl Write) -> bool {
    try_watch(command, suites, out).unwrap_or_else(|error| {
        eprintln!("cannot run the tests: {error}");
        false
    })
}

/// Cargo announces suites on stderr and test programs report on stdout: one pipe keeps
/// the two in order.
fn try_watch(mut command: Command, suites: &mut Suites, out: &mut impl Write) -> io::Result<bool> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds the write end of the pipe open.
    drop(command);
    suites.pass_on(BufReader::new(reader), out)?;
    Ok(child.wait()?.success())
}

impl Suites {
    /// Copies the output of tests, and notes their outcomes.
    fn pass_on(&mut self, output: impl BufRead, out: &mut impl Write) -> io::Result<()> {
        for line in output.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(out, "{line}")?;
            let words = line.trim_start();
            let test = line.strip_prefix(TEST_STARTS);
            if let Some(name) = test.and_then(|line| line.strip_suffix(TEST_FAILED)) {
                self.failed.insert(name.to_owned());
            } else if SUITE_STARTS.iter().any(|start| words.starts_with(start)) {
                self.open = line;
            } else if words.starts_with(SUITE_ENDS) {
                self.closings.push((mem::take(&mut self.open), line));
            }
        }
        out.flush()
    }

    fn add(&mut self, other: Suites) {
        self.closings.extend(other.closings);
        self.failed.extend(other.failed);
    }
}

/// Prints failed tests, and every suite that had a test, so that one screen shows all.
fn close(suites: &Suites) {
    if !suites.failed.is_empty() {
        println!("\n==== failed");
    }
    for name in &suites.failed {
        println!("{name}");
    }
    println!("\n==== all suites");
    let closings = suites.closings.iter();
    for (suite, result) in closings.filter(|(_, result)| !is_empty(result)) {
        println!("{suite}\n{result}");
    }
}

/// Prints the reasons of skipped tests, and what installs the programs they need.
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
        println!("to run those that need rights, run this command as root");
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

    #[test]
    fn failed_tests_and_closing_lines_are_kept() {
        let output = "     Running tests/it/main.rs (target/it)\ntest a::b ... ok\n\
                      test c::d ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        let (mut suites, mut copy) = (Suites::default(), Vec::new());
        let copied = suites.pass_on(output.as_bytes(), &mut copy);
        copied.expect("memory takes all");
        assert_eq!(copy, output.as_bytes());
        assert_eq!(suites.failed, BTreeSet::from(["c::d".to_owned()]));
        let [(title, result)] = suites.closings.as_slice() else {
            panic!("{:?}", suites.closings);
        };
        assert!(title.contains("tests/it/main.rs") && result.contains("1 failed"));
    }
}
