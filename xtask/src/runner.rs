//! Steps: run one after the other, timed, and reported at the end.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Outcome of a step.
#[derive(Debug)]
pub enum Outcome {
    /// The step succeeded.
    Passed,
    /// The step could not run here, for this reason.
    Skipped(String),
    /// The step failed, with this message.
    Failed(String),
}

/// Runs steps and records their outcomes. A failed step does not stop the next:
/// one run shows all faults.
#[derive(Debug)]
pub struct Runner {
    done: Vec<(String, Duration, Outcome)>,
}

impl Runner {
    /// Creates a runner without steps.
    pub fn new() -> Runner {
        Runner { done: Vec::new() }
    }

    /// Runs one step under a headline.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("\n==== {name}");
        let start = Instant::now();
        let outcome = work();
        let time = start.elapsed();
        println!("---- {}", sentence(name, time, &outcome));
        self.done.push((name.to_owned(), time, outcome));
    }

    /// Returns a sentence for every step so far.
    pub fn outcomes(&self) -> impl Iterator<Item = String> {
        let steps = self.done.iter();
        steps.map(|(name, time, outcome)| sentence(name, *time, outcome))
    }

    /// Prints the outcome of every step; fails if one failed.
    pub fn finish(self) -> ExitCode {
        let total: Duration = self.done.iter().map(|(_, time, _)| *time).sum();
        println!(
            "\n==== {} steps in {:.0} s",
            self.done.len(),
            total.as_secs_f64()
        );
        for (name, time, outcome) in &self.done {
            println!("  {}", sentence(name, *time, outcome));
        }
        let failed = self
            .done
            .iter()
            .filter(|(_, _, outcome)| matches!(outcome, Outcome::Failed(_)));
        let failed: Vec<&str> = failed.map(|(name, _, _)| name.as_str()).collect();
        if failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        eprintln!("FAILED: {}", failed.join(", "));
        ExitCode::FAILURE
    }
}

fn sentence(name: &str, time: Duration, outcome: &Outcome) -> String {
    let seconds = time.as_secs_f64();
    match outcome {
        Outcome::Passed => format!("{name}: ok ({seconds:.1} s)"),
        Outcome::Skipped(why) => format!("{name}: SKIPPED: {why} ({seconds:.1} s)"),
        Outcome::Failed(what) => format!("{name}: FAILED: {what} ({seconds:.1} s)"),
    }
}

/// Returns whether this is a run of continuous integration: lock files must then
/// be current, and no process may hang or be left over.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Returns the repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Returns the directory in which cargo builds the workspace.
pub fn target_dir() -> PathBuf {
    let chosen = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    chosen.map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns `cargo` with these arguments, at the repository's root.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = limited("cargo");
    command.args(arguments);
    command
}

/// Returns `cargo` with this command for the whole workspace. A single package enables
/// fewer features of its dependencies, and cargo would build those again.
pub fn workspace(command: &str) -> Command {
    let mut command = cargo([command, "--workspace"]);
    command.args(locked());
    command
}

/// Returns the path of a program in the build of the tests.
pub fn built(program: &Path) -> String {
    let path = target_dir().join("debug").join(program);
    path.to_string_lossy().into_owned()
}

/// Returns arguments that make cargo refuse to change a lock file, in continuous
/// integration.
pub fn locked() -> &'static [&'static str] {
    if is_ci() { &["--locked"] } else { &[] }
}

/// Time limit of one command in continuous integration, in seconds: a hang fails
/// its step and not the whole run.
const LIMIT: &str = "1500";

/// Returns a command at the repository's root, without input; in continuous
/// integration it has a time limit.
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

/// `timeout`'s exit code after it ended the command.
const TIMED_OUT: i32 = 124;

/// Runs a command to its end, and shows its output.
pub fn run(mut command: Command) -> Outcome {
    println!("  $ {}", shown(&command));
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) if is_ci() && status.code() == Some(TIMED_OUT) => {
            Outcome::Failed(format!("still running after {LIMIT} s"))
        }
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(error) => Outcome::Failed(format!("cannot run: {error}")),
    }
}

/// Runs commands until one fails.
pub fn run_all(commands: impl IntoIterator<Item = Command>) -> Outcome {
    for command in commands {
        let outcome = run(command);
        if !matches!(outcome, Outcome::Passed) {
            return outcome;
        }
    }
    Outcome::Passed
}

/// Returns whether a command exists and succeeds; its output is discarded.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns a command as typed in a shell.
fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}='{}' ", key.to_str()?, value?.to_str()?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    variables.collect::<String>() + &words.join(" ")
}
