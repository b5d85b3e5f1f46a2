//! Rights that a run keeps after opening its ports.

use std::fs;
use std::time::Instant;

use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, words};

use crate::common::process::TIMEOUT;
use crate::common::wire::wired;
use crate::common::{pcap, write};
use crate::interfaces::{Live, RECEIVES, RUNS, start};

const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const NET_ADMIN: u64 = 1 << 12;
const IPC_LOCK: u64 = 1 << 14;
const SYS_NICE: u64 = 1 << 23;

/// A thread's capabilities.
#[derive(Debug)]
#[allow(dead_code, reason = "a failure shows the name")]
struct Thread {
    name: String,
    is_main: bool,
    effective: u64,
    permitted: u64,
}

/// Returns the capabilities of all threads of a process.
fn capabilities(process: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let threads = tasks.filter_map(|task| {
        let task = task.expect("a thread");
        // A thread may end meanwhile.
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mask = |set| u64::from_str_radix(field(&status, set), 16).expect("a mask");
        Some(Thread {
            name: field(&status, "Name").to_owned(),
            is_main: task.file_name().to_str() == Some(&process.to_string()),
            effective: mask("CapEff"),
            permitted: mask("CapPrm"),
        })
    });
    threads.collect()
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(found, _)| *found == name);
    found.next().map_or("", |(_, value)| value.trim())
}

/// Capabilities that every thread keeps for timing.
const TIMING: u64 = SYS_NICE | IPC_LOCK;

/// Asserts that no thread keeps capabilities other than those for timing, restoring,
/// reading traces and `more`, and that the main thread, from which packet threads
/// inherit, keeps those for timing and `needed`. The main thread drops its rights
/// shortly after it reports that it runs.
#[track_caller]
fn assert_given_up(running: &mut Live, needed: u64, more: u64) {
    let allowed = TIMING | DAC_READ_SEARCH | needed | more;
    let end = Instant::now() + TIMEOUT;
    loop {
        let found = capabilities(running.id());
        assert!(found.iter().any(|thread| thread.is_main), "{found:?}");
        for thread in &found {
            let kept = thread.effective;
            assert_eq!(kept & TIMING, TIMING, "{thread:x?}");
            assert!(!thread.is_main || kept & needed == needed, "{thread:x?}");
        }
        let too_many = found
            .iter()
            .filter(|thread| (thread.effective | thread.permitted) & !allowed != 0)
            .collect::<Vec<_>>();
        if too_many.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{too_many:x?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn place() -> Option<NetNamespace> {
    wired(&[("a0", "a1"), ("b0", "b1")])
}

#[test]
fn a_run_keeps_what_timing_and_restoring_take() {
    let Some(place) = place() else { return };
    let mut run = start(&place, &["run", "packet:a0", "packet:b0"], RUNS);
    assert_given_up(&mut run, NET_ADMIN, 0);
    let mut receiver = start(&place, &["receive", "packet:a1", "--witness"], RECEIVES);
    assert_given_up(&mut receiver, NET_ADMIN, 0);
}

/// TAP devices created by a run vanish with it.
#[test]
fn a_run_without_settings_to_restore_does_not_keep_the_right_to() {
    let Some(place) = place() else { return };
    let mut run = start(&place, &["run", "tap:lw0", "tap:lw1"], RUNS);
    assert_given_up(&mut run, 0, 0);
}

#[test]
fn a_network_also_reads_files_and_removes_its_socket() {
    let Some(place) = place() else { return };
    let dir = Folder::new();
    let socket = dir.file("a.sock");
    let mut run = start(&place, &["run", "a0", "b0", "--control", &socket], RUNS);
    assert_given_up(&mut run, NET_ADMIN, DAC_OVERRIDE);
}

#[test]
fn senders_keep_no_more() {
    let Some(place) = place() else { return };
    let dir = Folder::new();
    let trace = dir.file("a.pcap");
    write(&trace, &pcap(&[(0, 100), (1_000_000, 100)]));
    let replay = format!("replay {trace} --to a0 --loop 0 --receive a1");
    let mut replay = start(&place, &words(&replay), "sending to");
    assert_given_up(&mut replay, NET_ADMIN, 0);
    let generate = words("generate --to b0 --rate 1kpps --time 1min");
    let mut generate = start(&place, &generate, "sending to");
    assert_given_up(&mut generate, NET_ADMIN, 0);
}

#[test]
fn a_command_behind_a_link_has_the_rights_of_its_user() {
    let Some(place) = place() else { return };
    let output = place.run(|| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longwire"));
        let script = "grep CapEff /proc/self/status; grep -h CapEff /proc/$PPID/task/*/status";
        command.args([
            "exec",
            "-q",
            "--",
            "sh",
            "-c",
            &format!("sleep 1; {script}"),
        ]);
        command.output()
    });
    let ran = crate::common::ran(output.expect("it is entered").expect("it starts"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let masks = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let masks: Vec<u64> = masks
        .map(|mask| u64::from_str_radix(mask, 16).expect("a mask"))
        .collect();
    let own = u64::from_str_radix(
        field(
            &fs::read_to_string("/proc/self/status").expect("proc"),
            "CapEff",
        ),
        16,
    );
    assert_eq!(masks[0], own.expect("a mask"), "the command's own");
    const KILL: u64 = 1 << 5;
    let allowed = TIMING | NET_ADMIN | DAC_READ_SEARCH | KILL;
    assert!(masks.len() > 2, "{ran:?}");
    for mask in &masks[1..] {
        assert_eq!(mask & !allowed, 0, "{ran:?}");
        assert_eq!(mask & TIMING, TIMING, "{ran:?}");
    }
}
