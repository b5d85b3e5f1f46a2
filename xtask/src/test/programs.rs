//! The test programs of the workspace, and their tests.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::runner::{is_ci, locked, root, succeeds, workspace};

/// Packages whose tests do not read a clock.
const TIMELESS: [&str; 7] = [
    "longwire-capture",
    "longwire-engine",
    "longwire-packet",
    "longwire-plot",
    "longwire-topology",
    "longwire-units",
    "xtask",
];

/// Name prefixes of tests that load the machine, or compare its state before and after the test.
const ALONE: [&str; 3] = [
    "longwire::alone::hosts::",
    "longwire::alone::leftovers::",
    "longwire::alone::uplink::",
];

/// Time limits of a test in seconds: normally, and at idle priority.
const LIMITS_S: (u32, u32) = (600, 1_200);

/// Exit code of `timeout` after a timeout.
pub const TIMED_OUT: i32 = 124;

/// Group of a test, which determines the tests that may run concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Runs with any test: it reads no clock, and has idle priority.
    Timeless,
    /// Runs with all tests except exclusive ones.
    Timed,
    /// Exclusive: runs only with timeless tests.
    Alone,
}

/// A test, and the command that runs it in a separate process.
#[derive(Debug)]
pub struct Job {
    pub name: String,
    /// Headline of the test program.
    pub suite: String,
    pub group: Group,
    pub command: Command,
}

/// A test program built by cargo.
#[derive(Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// Folder of the package, in which the program runs.
    folder: PathBuf,
    /// Source of the program.
    source: PathBuf,
    path: PathBuf,
}

impl TestProgram {
    /// Builds all test programs; `None` if that fails.
    pub fn build_all() -> io::Result<Option<Vec<TestProgram>>> {
        let mut build = workspace("test");
        build.args(["--no-run", "--message-format=json-render-diagnostics"]);
        let mut cargo = build.stdout(Stdio::piped()).spawn()?;
        let output = cargo.stdout.take().map(BufReader::new);
        let mut programs = Vec::new();
        for line in output.into_iter().flat_map(BufRead::lines) {
            programs.extend(TestProgram::read(&line?));
        }
        Ok(cargo.wait()?.success().then_some(programs))
    }

    /// Parses a message of cargo: a JSON object without spaces.
    fn read(message: &str) -> Option<TestProgram> {
        // Search for the profile's field `test`, because the target has a field of the same name.
        if !message.contains(r#""test":true},"features""#) {
            return None;
        }
        let path = |name: &str| {
            let start = message.find(name)? + name.len();
            let text = message[start..].split('"').next()?;
            // Paths that need JSON escapes are rare, and not supported.
            (!text.contains('\\')).then(|| PathBuf::from(text))
        };
        Some(TestProgram {
            folder: path(r#""manifest_path":""#)?.parent()?.to_owned(),
            source: path(r#""src_path":""#)?,
            path: path(r#""executable":""#)?,
        })
    }

    /// Returns the tests of the program. A bench counts as one test, because its set-up runs even
    /// when its parts are listed.
    pub fn jobs(&self) -> io::Result<Vec<Job>> {
        if self.source.iter().any(|part| part == "benches") {
            return Ok(vec![self.job(None)]);
        }
        let mut list = Command::new(&self.path);
        // `--format=terse` must be one word for some test runners other than libtest.
        list.args(["--list", "--format=terse"]);
        let output = list.current_dir(&self.folder).output()?;
        if !output.status.success() {
            let path = self.path.display();
            return Err(io::Error::other(format!("{path} does not list its tests")));
        }
        let output = String::from_utf8_lossy(&output.stdout);
        let lines = output.lines();
        let tests = lines.filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(|test| self.job(Some(test))).collect())
    }

    fn job(&self, test: Option<&str>) -> Job {
        let prefix = self.prefix();
        let name = test.map_or(prefix.clone(), |test| format!("{prefix}::{test}"));
        let group = self.group(&name);
        let mut command = match group {
            Group::Timeless => idle(),
            Group::Timed | Group::Alone => time_limit(LIMITS_S.0),
        };
        command.arg(&self.path).current_dir(&self.folder);
        if let Some(test) = test {
            command.args([test, "--exact"]);
        }
        Job {
            name,
            suite: self.title(),
            group,
            command,
        }
    }

    fn group(&self, name: &str) -> Group {
        let package = self.folder.file_name().and_then(OsStr::to_str);
        if package.is_some_and(|package| TIMELESS.contains(&package)) {
            Group::Timeless
        } else if ALONE.iter().any(|start| name.starts_with(start)) {
            Group::Alone
        } else {
            Group::Timed
        }
    }

    /// Returns the prefix of the program's test names: the package, followed by the program if its
    /// name differs.
    fn prefix(&self) -> String {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let (package, program) = (name(&self.folder), name(&self.path));
        let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
        if program == package.replace('-', "_") {
            package
        } else {
            format!("{package}::{program}")
        }
    }

    /// Returns the program's headline: its source and its file.
    fn title(&self) -> String {
        let below = |path: &Path| path.strip_prefix(root()).unwrap_or(path).to_owned();
        let (source, path) = (below(&self.source), below(&self.path));
        format!("     Running {} ({})", source.display(), path.display())
    }
}

/// Returns the command prefix for a test's time limit.
fn time_limit(seconds: u32) -> Command {
    let mut command = Command::new("timeout");
    if !is_ci() {
        // In the foreground, Ctrl+C reaches the test, but children of the test may outlive the
        // limit.
        command.arg("--foreground");
    }
    command.args(["--kill-after=10", &seconds.to_string()]);
    command
}

/// Returns the command prefix for idle priority with a time limit.
fn idle() -> Command {
    let mut command = time_limit(LIMITS_S.1);
    if succeeds("chrt", &["--idle", "0", "true"]) {
        command.args(["chrt", "--idle", "0"]);
    }
    command
}

/// Returns the documentation tests, which cargo runs as a whole.
pub fn document_tests() -> Job {
    let mut command = idle();
    command.args(["cargo", "test", "--doc", "--workspace", "--no-fail-fast"]);
    command.args(locked()).current_dir(root());
    Job {
        name: "documentation".to_owned(),
        suite: String::new(),
        group: Group::Timeless,
        command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_messages() {
        let message = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///l/crates/longwire-units#0.1.0","#,
            r#""manifest_path":"/l/crates/longwire-units/Cargo.toml","target":{"kind":["test"],"#,
            r#""name":"it","src_path":"/l/crates/longwire-units/tests/it/main.rs","edition":"2024","test":true},"#,
            r#""profile":{"opt_level":"1","debuginfo":1,"test":true},"features":[],"#,
            r#""filenames":["/l/target/debug/deps/it-1"],"executable":"/l/target/debug/deps/it-1","fresh":true}"#
        );
        let read = TestProgram::read(message).expect("a test program");
        assert_eq!(read.folder, Path::new("/l/crates/longwire-units"));
        assert_eq!(read.path, Path::new("/l/target/debug/deps/it-1"));
        let job = read.job(Some("a::b"));
        assert_eq!(job.name, "longwire-units::it::a::b");
        assert_eq!(job.group, Group::Timeless);
        assert!(job.suite.contains("tests/it/main.rs"), "{}", job.suite);
        let library = message.replace(
            r#""executable":"/l/target/debug/deps/it-1""#,
            r#""executable":null"#,
        );
        assert_eq!(TestProgram::read(&library), None);
        let program = message.replace(r#""test":true},"features""#, r#""test":false},"features""#);
        assert_eq!(TestProgram::read(&program), None);
    }

    #[test]
    fn groups_follow_from_packages_and_names() {
        let program = |folder: &str, path: &str| TestProgram {
            folder: PathBuf::from(folder),
            source: PathBuf::new(),
            path: PathBuf::from(path),
        };
        let library = program("/l/crates/longwire-io", "/l/deps/longwire_io-0a").job(Some("a::b"));
        assert_eq!(
            (&*library.name, library.group),
            ("longwire-io::a::b", Group::Timed)
        );
        let alone = program("/l/crates/longwire", "/l/deps/alone-0a");
        assert_eq!(alone.job(Some("hosts::a")).group, Group::Alone);
        assert_eq!(alone.job(Some("book::a")).group, Group::Timed);
    }
}
