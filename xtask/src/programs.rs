//! The test programs of the workspace.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::runner::{limited, root, succeeds, workspace};

/// Packages whose tests read no clock and need no quiet machine.
const TIMELESS: [&str; 7] = [
    "longwire-capture",
    "longwire-engine",
    "longwire-packet",
    "longwire-plot",
    "longwire-topology",
    "longwire-units",
    "xtask",
];

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// Folder of its package, where it runs.
    folder: PathBuf,
    /// Its source.
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

    /// Reads one of cargo's messages: a JSON object without spaces.
    fn read(message: &str) -> Option<TestProgram> {
        if !message.contains(r#""test":true},"#) {
            return None;
        }
        let path = |name: &str| {
            let start = message.find(name)? + name.len();
            let text = message[start..].split('"').next()?;
            // No path of a checkout is escaped in JSON, unless it is on purpose.
            (!text.contains('\\')).then(|| PathBuf::from(text))
        };
        Some(TestProgram {
            folder: path(r#""manifest_path":""#)?.parent()?.to_owned(),
            source: path(r#""src_path":""#)?,
            path: path(r#""executable":""#)?,
        })
    }

    /// Whether its tests read no clock.
    pub fn is_timeless(&self) -> bool {
        let package = self.folder.file_name().and_then(OsStr::to_str);
        package.is_some_and(|package| TIMELESS.contains(&package))
    }

    /// Returns its headline: its source, and the file.
    pub fn title(&self) -> String {
        let below = |path: &Path| path.strip_prefix(root()).unwrap_or(path).to_owned();
        let (source, path) = (below(&self.source), below(&self.path));
        format!("     Running {} ({})", source.display(), path.display())
    }

    /// Returns a command that runs it.
    pub fn command(&self) -> Command {
        self.in_folder(limited(&self.path.to_string_lossy()))
    }

    /// Returns a command that runs it while the processors have nothing else to do.
    pub fn idle_command(&self) -> Command {
        let mut command = idle();
        command.arg(&self.path);
        self.in_folder(command)
    }

    fn in_folder(&self, mut command: Command) -> Command {
        command.current_dir(&self.folder);
        command
    }
}

/// Returns the beginning of a command that runs while the processors have nothing else
/// to do.
pub fn idle() -> Command {
    if succeeds("chrt", &["--idle", "0", "true"]) {
        let mut command = limited("chrt");
        command.args(["--idle", "0"]);
        command
    } else {
        limited("env")
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
            r#""name":"it","src_path":"/l/crates/longwire-units/tests/it/main.rs","edition":"2024"},"#,
            r#""profile":{"opt_level":"1","debuginfo":1,"test":true},"features":[],"#,
            r#""filenames":["/l/target/debug/deps/it-1"],"executable":"/l/target/debug/deps/it-1","fresh":true}"#
        );
        let read = TestProgram::read(message).expect("a test program");
        assert_eq!(read.folder, Path::new("/l/crates/longwire-units"));
        assert_eq!(read.path, Path::new("/l/target/debug/deps/it-1"));
        assert!(
            read.title().contains("tests/it/main.rs"),
            "{}",
            read.title()
        );
        assert!(read.is_timeless());
        let library = message.replace(
            r#""executable":"/l/target/debug/deps/it-1""#,
            r#""executable":null"#,
        );
        assert_eq!(TestProgram::read(&library), None);
        let program = message.replace(r#""test":true"#, r#""test":false"#);
        assert_eq!(TestProgram::read(&program), None);
    }
}
