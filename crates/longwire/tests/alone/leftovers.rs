//! Tests that nothing remains of `exec`, however a run ends.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use longwire_io::net;

use crate::common::program::{RunningProgram, eventually};
use crate::common::user::User;

/// Everything that a run could leave in the system, except processes.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    devices: Vec<String>,
    mounts: String,
    settings: [String; 2],
    records: Vec<String>,
}

fn traces() -> Traces {
    let mut devices = net::link_names().expect("devices");
    devices.sort();
    let settings = ["ipv4/ip_forward", "ipv4/ping_group_range"];
    Traces {
        devices,
        mounts: fs::read_to_string("/proc/self/mountinfo").expect("mounts"),
        settings: settings.map(|key| net::sysctl::get(key).expect("a setting")),
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

#[test]
fn nothing_is_left_after_the_end() {
    let _alone = crate::alone();
    for user in User::all() {
        let before = traces();
        // Both commands leave a background process; that of CMD ignores SIGTERM.
        let peer = "--peer-wait 1s --peer 'sleep 86402 & sleep 0.1'";
        let line = "trap \"\" TERM; sleep 86401 & echo done";
        user.exec(format!("{peer} -- sh -c '{line}'")).well();
        assert_eq!(traces(), before);
        assert_eq!(processes_with(&["86401", "86402"]), [""; 0]);
    }
}

#[test]
fn nothing_is_left_after_a_kill() {
    let _alone = crate::alone();
    for user in User::all() {
        let before = traces();
        let peer = "trap \"\" TERM; sleep 86405 & while :; do sleep 86406; done";
        let line = "sleep 86403 & setsid sleep 86404 & touch ready; wait";
        let line = format!("--peer-wait 1s --peer '{peer}' -- sh -c '{line}'");
        let mut command = user.exec_command(line);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = RunningProgram::spawn(&mut command);
        user.wait_for_file("ready");
        running.kill();
        let killed = Instant::now();
        eventually("they survive", || {
            processes_with(&["86403", "86404", "86405", "86406"]).is_empty()
        });
        assert!(killed.elapsed() < Duration::from_secs(10));
        assert_eq!(traces(), before);
    }
}
