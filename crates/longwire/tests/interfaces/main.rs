//! What runs do with the interfaces and files of a machine: locks, settings
//! that are restored, rights that are given up, reports that are kept.
//!
//! Where namespaces are not allowed these tests pass without having run,
//! except in CI.

mod capabilities;
#[path = "../common/mod.rs"]
mod common;
mod directory;
mod locks;
mod refusals;
mod reports;
mod restored;

use std::process::{Command, Stdio};

use common::process::{Running, wait_for_word};
use longwire_io::net::NetNamespace;

/// Starts `longwire` in a namespace, and waits until it has said `ready` on
/// stderr.
fn start(namespace: &NetNamespace, arguments: &[&str], ready: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(namespace, &mut command);
    wait_for_word(&mut running, ready);
    running
}

/// What `run` and `replay` say once they run, and what `receive` says.
const RUNS: &str = "placement:";
const RECEIVES: &str = "receiving at";
