//! A dropped link leaves nothing behind. This test checks the whole process, so it is the only one
//! in its binary.
#![allow(missing_docs, reason = "tests")]

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use longwire_testbed::support::skip;
use longwire_testbed::{Testbed, TestbedError};

/// Returns the number of entries of a directory under `/proc/self`.
fn count(directory: &str) -> usize {
    let path = format!("/proc/self/{directory}");
    fs::read_dir(path).expect("the kernel lists them").count()
}

/// Starts a link, with a thread and processes in its networks, and drops it.
fn use_once() -> Result<(), TestbedError> {
    let net = Testbed::link("delay=5ms")?.start()?;
    // Neither the shell nor its child ends by itself.
    let mut command = Command::new("sh");
    let line = "trap '' TERM; sleep 86407 & echo ready; wait";
    command.args(["-c", line]).stdout(Stdio::piped());
    let mut child = net.far().start(command)?;
    let mut ready = [0; 6];
    let mut output = child.stdout.take().expect("it is piped");
    output.read_exact(&mut ready).expect("a word");
    let thread = net.near().spawn(|| 7)?;
    assert_eq!(thread.join().expect("it ends"), 7);
    drop(net);
    assert!(!child.wait().expect("it is ended").success());
    Ok(())
}

#[test]
fn dropping_leaves_nothing() {
    match use_once() {
        Err(error) if error.is_unprivileged() => return skip(error).unwrap_or_default(),
        used => used.expect("a link"),
    }
    // The first run may create resources that the process keeps.
    let before = ["task", "fd"].map(count);
    use_once().expect("a second link");
    assert_eq!(["task", "fd"].map(count), before, "threads and descriptors");
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    assert_eq!(lines.filter(|line| line.ends_with(b"86407\0")).count(), 0);
}
