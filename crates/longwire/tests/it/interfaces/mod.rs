//! Effects of runs on the interfaces and files of a machine: locks, settings
//! that are restored, rights that are dropped, reports that are kept.
//!
//! Where namespaces are not allowed these tests pass without having run,
//! except in CI.

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

/// Starts `longwire` in a namespace, and waits until it has said `ready` on
/// stderr.
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

/// Runs a script in new namespaces, as `options` name them; `$1` is the program, and
/// `arguments` follow it.
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

/// Options of `unshare` with which any user is root.
const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// As [`unshared`], with [`AS_ROOT`] where this user is not root.
fn unshared_by_root(options: &[&str], script: &str, arguments: &[&str]) -> Option<Ran> {
    let is_root = nix::unistd::geteuid().is_root();
    let user: &[&str] = if is_root { &[] } else { &AS_ROOT };
    unshared(&[user, options].concat(), script, arguments)
}

/// A program that is stopped when this is dropped, so that it restores
/// what it changed.
struct Live(Option<RunningProgram>);

impl Live {
    fn running(&mut self) -> &mut RunningProgram {
        self.0.as_mut().expect("it has not been stopped")
    }

    /// Its process.
    fn id(&mut self) -> u32 {
        self.running().child().id()
    }

    /// Stops it and waits for its end.
    fn stop(mut self) {
        self.end_with(Signal::SIGINT);
    }

    /// Kills it and waits for its end.
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

/// First words of `run` once it runs, and of `receive`.
const RUNS: &str = "link";
const RECEIVES: &str = "receiving at";
