//! Effects of runs on a machine's interfaces and files: locks, restored settings,
//! dropped rights, kept reports.
//!
//! Without permission to create namespaces, these tests pass without running, except in
//! CI.

mod capabilities;
mod directory;
mod locks;
mod names;
mod refusals;
mod reports;
mod restored;

use std::process::{Command, Stdio};

use crate::common::process::{RunningProgram, wait_for_word};
use crate::common::{Ran, ran};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::skip;
use nix::sys::signal::Signal;

/// Starts `longwire` in a namespace and waits until it prints `ready` on stderr.
fn start(namespace: &NetNamespace, arguments: &[&str], ready: &str) -> Live {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = RunningProgram::start(namespace, &mut command);
    wait_for_word(&mut running, ready);
    Live(Some(running))
}

/// Runs a script in new namespaces given by `options`; `$1` is the program, followed by
/// `arguments`.
fn unshared(options: &[&str], script: &str, arguments: &[&str]) -> Option<Ran> {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_longwire")).args(arguments);
    let ran = ran(command.output().expect("unshare starts"));
    if ran.stderr.contains("unshare failed") {
        skip(&ran.stderr)
    } else {
        Some(ran)
    }
}

/// Options of `unshare` that make any user root.
const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// As [`unshared`], with [`AS_ROOT`] if this user is not root.
fn unshared_by_root(options: &[&str], script: &str, arguments: &[&str]) -> Option<Ran> {
    let is_root = nix::unistd::geteuid().is_root();
    let user: &[&str] = if is_root { &[] } else { &AS_ROOT };
    unshared(&[user, options].concat(), script, arguments)
}

/// A program that is stopped on drop, so that it restores its changes.
struct Live(Option<RunningProgram>);

impl Live {
    fn running(&mut self) -> &mut RunningProgram {
        self.0.as_mut().expect("it has not been stopped")
    }

    /// Returns the process ID.
    fn id(&mut self) -> u32 {
        self.running().child().id()
    }

    /// Stops the program and waits for its end.
    fn stop(mut self) {
        self.end_with(Signal::SIGINT);
    }

    /// Kills the program and waits for its end.
    fn kill(mut self) {
        self.end_with(Signal::SIGKILL);
    }

    fn end_with(&mut self, signal: Signal) {
        if let Some(running) = self.0.take() {
            running.signal(signal);
            running.end();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end_with(Signal::SIGINT);
        }
    }
}

/// First words of `run` and of `receive` once they run.
const RUNS: &str = "link";
const RECEIVES: &str = "receiving at";
