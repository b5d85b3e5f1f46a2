//! The three tiers: on every commit, by changed paths, and full.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::checks::{CHECKS, Check};
use crate::runner::Shortfall::Failed;
use crate::runner::{Runner, root};
use crate::{leftovers, tools};

/// Runs checks.
pub fn run(runner: &mut Runner, checks: &[&Check]) {
    for check in checks {
        (check.run)(runner);
    }
}

/// Runs the checks whose files have changed since their last recorded pass.
pub fn by_path(runner: &mut Runner, checks: &[&Check]) {
    for check in checks {
        let name = check.name;
        let why = match changed_since_pass(name) {
            None => "no recorded pass".to_owned(),
            Some((commit, files)) => match check.affected_by(&files) {
                Some(file) => format!("{file} changed since {commit}"),
                None => {
                    println!("{name}: nothing changed since {commit}");
                    continue;
                }
            },
        };
        println!("{name}: {why}");
        (check.run)(runner);
    }
}

/// Runs checks of any tier and records each. If `rest` is set, skips checks that have passed on
/// this tree. A run of all checks first installs the programs that they need.
pub fn full(runner: &mut Runner, checks: &[&Check], rest: bool) {
    if checks.len() == CHECKS.len() {
        tools::install(runner, true);
    }
    let before = leftovers::look();
    for check in checks {
        let name = check.name;
        if rest && changed_since_pass(name).is_some_and(|(_, files)| files.is_empty()) {
            println!("{name}: already passed on this tree");
            continue;
        }
        let start = runner.len();
        (check.run)(runner);
        record(runner, name, runner.seconds, start);
    }
    runner.step("nothing left behind", || leftovers::compare(&before));
}

/// Records the steps from `start` on as one check. `of` is the number of seconds or runs.
pub fn record(runner: &mut Runner, name: &str, of: u32, start: usize) {
    let (result, time) = runner.summary(start);
    if let Err(error) = append(name, of, &result, time) {
        runner.step("record", || Err(Failed(error)));
    }
}

/// The document with the record.
pub const RECORD: &str = "docs/long-runs.md";

/// Result of a check in which every step passed.
pub const PASSED: &str = "ok";

/// Appends the result of a check at the checked-out commit.
fn append(check: &str, of: u32, result: &str, time: Duration) -> Result<(), String> {
    let date = output("date", &["-u", "+%F %H:%M"]).unwrap_or_default();
    let row = row(&date, &head(), check, of, result, time);
    let file = OpenOptions::new().append(true).open(root().join(RECORD));
    let written = file.and_then(|mut file| file.write_all(row.as_bytes()));
    written.map_err(|error| format!("cannot write {RECORD}: {error}"))
}

fn row(date: &str, commit: &str, check: &str, of: u32, result: &str, time: Duration) -> String {
    let result = result.replace('|', "/").replace('\n', " ");
    let time = time.as_secs_f64();
    format!("| {date} | {commit} | {check} | {of} | {result} | {time:.0} s |\n")
}

/// Returns the checked-out commit, with `+` if files other than the record have changed since.
fn head() -> String {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let except = format!(":!{RECORD}");
    let status = output("git", &["status", "--porcelain", "--", ".", &except]);
    let is_clean = status.is_some_and(|files| files.is_empty());
    commit + if is_clean { "" } else { "+" }
}

/// Returns the newest commit with a recorded pass, and the files that have changed since then,
/// except the record.
pub fn changed_since_pass(check: &str) -> Option<(String, Vec<String>)> {
    let record = fs::read_to_string(root().join(RECORD)).ok()?;
    let commits = passes(&record, check);
    commits.into_iter().rev().find_map(|commit| {
        let changed = output("git", &["diff", "--name-only", commit])?;
        let new = output("git", &["ls-files", "--others", "--exclude-standard"])?;
        let files = changed.lines().chain(new.lines());
        let files = files.filter(|file| *file != RECORD);
        Some((commit.to_owned(), files.map(str::to_owned).collect()))
    })
}

/// Returns the commits at which a check passed, oldest first.
fn passes<'a>(record: &'a str, check: &str) -> Vec<&'a str> {
    let rows = record.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(2);
        let (commit, name) = (cells.next()?, cells.next()?);
        let result = cells.nth(1)?;
        let is_commit = commit.chars().all(|digit| digit.is_ascii_hexdigit());
        (is_commit && !commit.is_empty() && name == check && result == PASSED).then_some(commit)
    });
    rows.collect()
}

/// Returns a program's stdout; `None` if it fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passes_at_clean_commits_count() {
        let time = Duration::from_millis(61_400);
        let rows = [
            ("aaaa", "loom", PASSED),
            ("bbbb", "loom", PASSED),
            ("cccc", "loom", "FAILED: loom: a|b\nc"),
            ("dddd+", "loom", PASSED),
            ("eeee", "asan", PASSED),
        ];
        let date = "2026-11-01 10:00";
        let rows = rows.map(|(commit, check, result)| row(date, commit, check, 5, result, time));
        let first = "| 2026-11-01 10:00 | aaaa | loom | 5 | ok | 61 s |\n";
        assert_eq!(rows[0], first);
        assert_eq!(rows[2].matches('|').count(), rows[0].matches('|').count());
        let record = format!("# Runs\n\n| date | commit |\n|---|---|\n{}", rows.concat());
        assert_eq!(passes(&record, "loom"), ["aaaa", "bbbb"]);
        assert_eq!(passes(&record, "asan"), ["eeee"]);
        assert!(passes(&record, "fuzz").is_empty());
    }
}
