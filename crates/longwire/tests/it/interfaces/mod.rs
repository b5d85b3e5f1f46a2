//! Effects of runs on a machine's interfaces and files: locks, restored settings, dropped
//! privileges and reports.
//!
//! Skipped without permission to create namespaces, except in CI.

mod capabilities;
mod files;
mod locks;
mod refusals;
mod restored;

use std::process::Command;

use longwire_io::net::NetNamespace;
use longwire_testbed::support::skip;
use nix::sys::signal::Signal;

use crate::common::program::{Ran, RunningProgram, start_in};

/// Starts `longwire` in a namespace and waits until it prints `ready` on stderr.
fn start(namespace: &NetNamespace, arguments: &str, ready: &str) -> Live {
    Live(Some(
        start_in(namespace, format!("longwire {arguments}")).ready(ready),
    ))
}

/// Runs a script in new namespaces according to `options`. `$1` is the program; `arguments` follow.
fn unshared(options: &[&str], script: &str, arguments: &[&str]) -> Option<Ran> {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", script, "sh"]);
    let ran = Ran::of(command.arg(env!("CARGO_BIN_EXE_longwire")).args(arguments));
    if ran.stderr.contains("unshare failed") {
        skip(&ran.stderr)
    } else {
        Some(ran)
    }
}

/// Options of `unshare` that make any user root.
const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];

/// Like [`unshared`], with [`AS_ROOT`] if this user is not root.
fn unshared_by_root(options: &[&str], script: &str, arguments: &[&str]) -> Option<Ran> {
    let is_root = nix::unistd::geteuid().is_root();
    let user: &[&str] = if is_root { &[] } else { &AS_ROOT };
    unshared(&[user, options].concat(), script, arguments)
}

/// A program that is stopped on drop, so that it restores its changes.
struct Live(Option<RunningProgram>);

impl Live {
    fn id(&self) -> u32 {
        self.0.as_ref().expect("it has not been stopped").id()
    }

    /// Kills the program and waits for its end.
    fn kill(mut self) {
        self.0.take().expect("it has not been stopped").kill();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(running) = self.0.take().filter(|_| !std::thread::panicking()) {
            let _ = running.end_by(Signal::SIGINT);
        }
    }
}

/// First word that `run` and `receive` print once they are running.
const RUNS: &str = "link";
const RECEIVES: &str = "receiving at";
