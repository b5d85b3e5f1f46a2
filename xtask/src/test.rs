//! Runs every test, and repeats the closing lines of all test programs at the
//! end. A few tests that failed next to others run again alone: both outcomes are
//! shown.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode};
use std::thread;

use crate::leftovers;
use crate::runner::{Outcome, cargo, is_ci, locked, target_dir};
use crate::tools;

/// Beginnings of cargo's line before a test program, and of the program's closing
/// line.
const SUITE_STARTS: [&str; 2] = ["Running ", "Doc-tests "];
const SUITE_ENDS: &str = "test result: ";

/// Beginning and end of the line of a test that failed.
const TEST_STARTS: &str = "test ";
const TEST_FAILED: &str = " ... FAILED";

/// How many failed tests may run again. More are no accident of a busy machine.
const AGAIN_MAX: usize = 3;

/// Names a file to which skipped tests append a line with their reason.
const SKIPPED: &str = "LONGWIRE_SKIPPED";

/// Number of tests that a test program runs at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Returns two for each core: many tests wait for programs or for time to pass, and more
/// of them delay each other's frames.
fn threads() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// Outcomes of the test programs of one run.
#[derive(Default)]
struct Suites {
    /// Headline and closing line of each.
    closings: Vec<(String, String)>,
    /// Names of the tests that failed.
    failed: BTreeSet<String>,
    /// Whether a test program ended without a closing line.
    has_crashed: bool,
}

/// Runs the tests; `chosen` are further arguments of `cargo test`.
pub fn run(chosen: &[&str]) -> ExitCode {
    let before = leftovers::look();
    let skipped = target_dir().join("skipped-tests");
    let _ = fs::remove_file(&skipped);
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
    let mut suites = Suites::default();
    let mut failed = false;
    for mut command in commands {
        if env::var_os(THREADS).is_none() {
            command.env(THREADS, threads().to_string());
        }
        command.env(SKIPPED, &skipped);
        failed |= !watch(command, &mut suites);
    }
    let mut unsteady = BTreeSet::new();
    if chosen.is_empty() && failed && suites.all_are_named() {
        unsteady = std::mem::take(&mut suites.failed);
        failed = !again(&unsteady, &mut suites);
    }
    if let Outcome::Failed(what) = leftovers::compare(&before) {
        eprintln!("\n{what}");
        // On a shared machine, another user may have made it.
        failed |= is_ci();
    }
    close(&suites);
    list_skipped(&fs::read_to_string(&skipped).unwrap_or_default());
    for name in &unsteady {
        let outcome = if suites.failed.contains(name) {
            "failed again"
        } else {
            "passed"
        };
        println!("failed next to other tests, and {outcome} alone: {name}");
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs these tests of the workspace one at a time; returns whether they passed.
fn again(names: &BTreeSet<String>, suites: &mut Suites) -> bool {
    println!("\n==== {} failed tests again, alone", names.len());
    let mut command = cargo(["test", "--no-fail-fast", "--workspace"]);
    command.args(locked()).args(["--", "--exact"]).args(names);
    command.env(THREADS, "1");
    watch(command, suites)
}

/// Runs one `cargo test`, and passes its output on; returns whether it succeeded.
fn watch(command: Command, suites: &mut Suites) -> bool {
    try_watch(command, suites).unwrap_or_else(|error| {
        eprintln!("cannot run the tests: {error}");
        false
    })
}

/// Cargo announces suites on stderr and test programs report on stdout: one pipe keeps
/// the two in order.
fn try_watch(mut command: Command, suites: &mut Suites) -> io::Result<bool> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds the write end of the pipe open.
    drop(command);
    suites.pass_on(BufReader::new(reader), &mut io::stdout().lock())?;
    Ok(child.wait()?.success())
}

impl Suites {
    /// Copies the output of tests, and notes their outcomes.
    fn pass_on(&mut self, output: impl BufRead, out: &mut impl Write) -> io::Result<()> {
        let mut suite = String::new();
        let mut is_open = false;
        for line in output.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(out, "{line}")?;
            let words = line.trim_start();
            let test = line.strip_prefix(TEST_STARTS);
            if let Some(name) = test.and_then(|line| line.strip_suffix(TEST_FAILED)) {
                self.failed.insert(name.to_owned());
            } else if SUITE_STARTS.iter().any(|start| words.starts_with(start)) {
                suite = line;
                self.has_crashed |= is_open;
                is_open = true;
            } else if words.starts_with(SUITE_ENDS) {
                is_open = false;
                self.closings.push((suite.clone(), line));
            }
        }
        self.has_crashed |= is_open;
        out.flush()
    }

    /// Whether all that failed are tests whose names are known, and few.
    fn all_are_named(&self) -> bool {
        let closings = self.closings.iter();
        let failed: usize = closings.filter_map(|(_, line)| failures(line)).sum();
        !self.has_crashed && failed == self.failed.len() && (1..=AGAIN_MAX).contains(&failed)
    }
}

/// Returns the number of failed tests in a closing line.
fn failures(closing: &str) -> Option<usize> {
    let (before, _) = closing.split_once(" failed;")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Prints every suite that had a test again, so that one screen shows all.
fn close(suites: &Suites) {
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

    fn read(output: &str) -> Suites {
        let mut suites = Suites::default();
        let copied = suites.pass_on(output.as_bytes(), &mut io::sink());
        copied.expect("a sink takes all");
        suites
    }

    #[test]
    fn only_a_few_named_tests_run_again() {
        let one = "     Running tests/it/main.rs (target/it)\ntest a::b ... ok\n\
                   test c::d ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        let suites = read(one);
        assert_eq!(suites.failed, BTreeSet::from(["c::d".to_owned()]));
        assert!(suites.all_are_named());
        assert!(!read("test result: ok. 7 passed; 0 failed; 0 ignored\n").all_are_named());
        let unnamed = one.replace("test c::d ... FAILED\n", "");
        assert!(!read(&unnamed).all_are_named());
        let many: String = (0..4)
            .map(|it| one.replace("c::d", &format!("c::{it}")))
            .collect();
        assert!(!read(&many).all_are_named());
        let killed = format!("   Doc-tests one\ntest e::f ... ok\n{one}");
        assert!(read(&killed).has_crashed && !read(&killed).all_are_named());
        let killed = format!("{one}   Doc-tests one\ntest e::f ... ok\n");
        assert!(!read(&killed).all_are_named());
    }
}
