//! Tests that nothing remains, however a run ends.

use std::fs;
use std::time::{Duration, Instant};

use longwire_io::net;
use nix::sys::signal::Signal;

use crate::role::{PEER, shell};
use crate::runs::{send, start_ready};
use crate::{Test, User};

pub const TESTS: &[Test] = &[
    ("after_the_end", after_the_end),
    ("after_a_kill", after_a_kill),
];

/// Everything that a run could leave in the system, except processes.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    devices: Vec<String>,
    mounts: String,
    settings: Vec<String>,
    records: Vec<String>,
}

fn traces() -> Traces {
    let mut devices = net::link_names().expect("devices");
    devices.sort();
    let settings = ["ipv4/ip_forward", "ipv4/ping_group_range"];
    Traces {
        devices,
        mounts: fs::read_to_string("/proc/self/mountinfo").expect("mounts"),
        settings: settings
            .map(|key| net::sysctl::get(key).expect("a setting"))
            .to_vec(),
        records: records(),
    }
}

/// Returns the records of changed settings in the run directory.
pub fn records() -> Vec<String> {
    let entries = fs::read_dir("/run/longwire").into_iter().flatten();
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("uplink-")).collect()
}

/// Returns the command lines of processes that contain one of these words.
fn processes_with(words: &[&str]) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("proc").flatten();
    entries
        .map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.split(' ').any(|part| words.contains(&part)))
        .collect()
}

fn after_the_end(user: User) {
    let before = traces();
    // Both commands leave a background process that ignores signals.
    let line = "trap '' TERM; sleep 86401 & echo done";
    let output = shell(user, line)
        .env(PEER, "sleep 86402 & sleep 0.1")
        .output();
    let output = output.expect("runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(traces(), before);
    assert_eq!(processes_with(&["86401", "86402"]), [""; 0]);
}

fn after_a_kill(user: User) {
    let before = traces();
    let line = "sleep 86403 & setsid sleep 86404 & echo ready; wait";
    let mut command = shell(user, line);
    command.env(
        PEER,
        "trap '' TERM; sleep 86405 & while :; do sleep 86406; done",
    );
    let (mut child, _out) = start_ready(&mut command);
    send(&child, Signal::SIGKILL);
    child.wait().expect("ends");
    let words = ["86403", "86404", "86405", "86406"];
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let survivors = processes_with(&words);
        if survivors.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "{survivors:?} survive");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(traces(), before);
}
