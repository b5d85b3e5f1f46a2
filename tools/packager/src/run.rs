//! Runs commands and reads files. Errors name the command or file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Result of a step. The error is a message to the user.
pub type Result<T> = std::result::Result<T, String>;

/// Adds a context to errors.
pub trait At<T> {
    /// Prefixes an error with the context.
    fn at(self, place: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: std::fmt::Display> At<T> for std::result::Result<T, E> {
    fn at(self, place: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| format!("{}: {error}", place.as_ref().display()))
    }
}

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).at(path)
}

/// Writes a file and its parent directories.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).at(parent)?;
    }
    fs::write(path, content).at(path)
}

/// Creates an empty directory.
pub fn clear(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).at(directory)?;
    }
    fs::create_dir_all(directory).at(directory)
}

/// Returns the paths in a directory, sorted by name.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).at(directory)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths
        .collect::<std::io::Result<Vec<PathBuf>>>()
        .at(directory)?;
    paths.sort();
    Ok(paths)
}

/// Runs a command that must succeed; shows its output.
pub fn run(command: &mut Command) -> Result<()> {
    println!("  $ {}", shown(command));
    let status = command.stdin(Stdio::null()).status();
    let status = status.at(command.get_program())?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", shown(command)))
}

fn output(command: &mut Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).output();
    output.at(command.get_program())
}

/// Creates a Python virtual environment, if it does not exist, and runs `pip install` in it with
/// these arguments.
pub fn make_venv(venv: &Path, packages: &[&str]) -> Result<()> {
    if !venv.join("bin/pip").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    }
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check"]);
    run(install.args(packages))
}

/// Runs a command that must succeed; returns its stdout.
pub fn stdout(command: &mut Command) -> Result<Vec<u8>> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}: {error}", shown(command), output.status))
}

/// Like [`stdout`], for text.
pub fn text(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&stdout(command)?).into_owned())
}

/// Result of a command that may fail.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output, then standard error.
    pub text: String,
}

/// Runs a command to completion; returns its exit code and output.
pub fn finish(command: &mut Command) -> Result<Finished> {
    let output = output(command)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Finished {
        code: output.status.code(),
        text: text + &String::from_utf8_lossy(&output.stderr),
    })
}

/// Returns whether a program is installed.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
