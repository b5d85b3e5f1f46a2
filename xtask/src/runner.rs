//! Runs steps in sequence, and records their times and outcomes.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime};

use Shortfall::{Failed, Skipped};

use crate::tiers::PASSED;

/// Outcome of a step.
pub type Outcome = Result<(), Shortfall>;

/// Reason why a step did not pass.
#[derive(Debug)]
pub enum Shortfall {
    /// The step cannot run on this machine, for this reason.
    Skipped(String),
    /// The step failed, with this message.
    Failed(String),
}

/// Default of [`Runner::seconds`].
const SECONDS_DEFAULT: u32 = 5;

/// Runs steps and records their outcomes. Continues after a failure, so that one run shows all
/// failures.
#[derive(Debug)]
pub struct Runner {
    /// Duration of each fuzz target and of the soak, in seconds.
    pub seconds: u32,
    done: Vec<(String, Duration, Outcome)>,
}

impl Runner {
    /// Creates a runner without steps.
    pub fn new() -> Runner {
        Runner {
            seconds: SECONDS_DEFAULT,
            done: Vec::new(),
        }
    }

    /// Runs a step under a headline.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("\n==== {name}");
        let start = Instant::now();
        let outcome = work();
        let time = start.elapsed();
        println!("---- {}", sentence(name, time, &outcome));
        note(name, time, &outcome);
        self.done.push((name.to_owned(), time, outcome));
    }

    /// Returns the number of steps so far.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Returns the combined result and time of the steps from `start` on: `ok`, or the outcomes of
    /// the steps that did not pass.
    pub fn summary(&self, start: usize) -> (String, Duration) {
        let steps = &self.done[start..];
        let others = steps.iter().filter_map(|(name, _, outcome)| match outcome {
            Ok(()) => None,
            Err(Skipped(why)) => Some(format!("skipped: {name}: {why}")),
            Err(Failed(what)) => Some(format!("FAILED: {name}: {what}")),
        });
        let mut result = others.collect::<Vec<String>>().join("; ");
        if result.is_empty() {
            result = PASSED.to_owned();
        }
        (result, steps.iter().map(|(_, time, _)| *time).sum())
    }

    /// Prints the outcome of every step; fails if any failed.
    pub fn finish(self) -> ExitCode {
        let (count, total) = (self.done.len(), self.summary(0).1.as_secs_f64());
        println!("\n==== {count} steps in {total:.0} s");
        for (name, time, outcome) in &self.done {
            println!("  {}", sentence(name, *time, outcome));
        }
        let failed = self.done.iter();
        let failed = failed.filter(|(_, _, outcome)| matches!(outcome, Err(Failed(_))));
        let failed: Vec<&str> = failed.map(|(name, _, _)| name.as_str()).collect();
        if failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        eprintln!("FAILED: {}", failed.join(", "));
        ExitCode::FAILURE
    }
}

/// Appends a step to `target/steps.tsv`, and to GitHub's job summary.
fn note(name: &str, time: Duration, outcome: &Outcome) {
    let append = |path: PathBuf, line: String| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    };
    let seconds = time.as_secs_f64();
    let word = match outcome {
        Ok(()) => PASSED,
        Err(Skipped(_)) => "skipped",
        Err(Failed(_)) => "FAILED",
    };
    let ended = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ended = ended.unwrap_or_default().as_secs();
    let row = format!("{ended}\t{name}\t{word}\t{seconds:.1}\n");
    append(target_dir().join("steps.tsv"), row);
    if let Some(summary) = env::var_os("GITHUB_STEP_SUMMARY") {
        let line = format!("* {}\n", sentence(name, time, outcome));
        append(summary.into(), line);
    }
}

fn sentence(name: &str, time: Duration, outcome: &Outcome) -> String {
    let seconds = time.as_secs_f64();
    match outcome {
        Ok(()) => format!("{name}: ok ({seconds:.1} s)"),
        Err(Skipped(why)) => format!("{name}: SKIPPED: {why} ({seconds:.1} s)"),
        Err(Failed(what)) => format!("{name}: FAILED: {what} ({seconds:.1} s)"),
    }
}

/// Returns whether this is continuous integration, where lock files must be up to date and commands
/// have time limits.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Returns the repository root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Returns the entries of a folder, or none if it cannot be read.
pub fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Creates a folder and its parents.
pub fn make_folder(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| Failed(format!("{}: {error}", folder.display())))
}

/// Returns the workspace's cargo target directory.
pub fn target_dir() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    chosen.map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns a `cargo` command with these arguments, run in the repository root.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = limited("cargo");
    command.args(arguments);
    command
}

/// Returns a `cargo` command for the whole workspace. Building a single package would rebuild
/// dependencies with fewer features.
pub fn workspace(command: &str) -> Command {
    let mut command = cargo([command, "--workspace"]);
    command.args(locked());
    command
}

/// Returns the path of a program built in the dev profile.
pub fn built(program: &Path) -> String {
    let path = target_dir().join("debug").join(program);
    path.to_string_lossy().into_owned()
}

/// Returns `--locked` in continuous integration.
pub fn locked() -> &'static [&'static str] {
    if is_ci() { &["--locked"] } else { &[] }
}

/// Time limit per command in continuous integration, in seconds, so that a hang only fails its
/// step.
const LIMIT: &str = "1500";

/// Returns a command that runs in the repository root without stdin, and in continuous integration
/// with a time limit.
pub fn limited(program: &str) -> Command {
    let mut command = if is_ci() {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", LIMIT, program]);
        command
    } else {
        Command::new(program)
    };
    command
        .current_dir(root())
        .stdin(std::process::Stdio::null());
    command
}

/// Exit code of `timeout` after a timeout.
const TIMED_OUT: i32 = 124;

/// Runs a command; shows its output.
pub fn run(mut command: Command) -> Outcome {
    println!("  $ {}", shown(&command));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if is_ci() && status.code() == Some(TIMED_OUT) => {
            Err(Failed(format!("still running after {LIMIT} s")))
        }
        Ok(status) => Err(Failed(status.to_string())),
        Err(error) => Err(Failed(format!("cannot run: {error}"))),
    }
}

/// Runs commands until one fails.
pub fn run_all(commands: impl IntoIterator<Item = Command>) -> Outcome {
    commands.into_iter().try_for_each(run)
}

/// Returns whether a command exists and succeeds; discards its output.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns a command in shell syntax.
fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}='{}' ", key.to_str()?, value?.to_str()?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    variables.collect::<String>() + &words.join(" ")
}
