//! Privileges that a run keeps after opening its ports.

use std::fs;

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;

use crate::common::program::{field, run_in, status_of, wait_for};
use crate::common::site::wired;
use crate::common::{pcap, write};
use crate::interfaces::{Live, RECEIVES, RUNS, start};

const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const NET_ADMIN: u64 = 1 << 12;
const IPC_LOCK: u64 = 1 << 14;
const SYS_NICE: u64 = 1 << 23;

/// Capabilities of a thread.
#[derive(Debug)]
#[allow(dead_code, reason = "a failure shows the name")]
struct Thread {
    name: String,
    is_main: bool,
    effective: u64,
    permitted: u64,
}

fn capabilities(process: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let threads = tasks.filter_map(|task| {
        let task = task.expect("a thread");
        // A thread may have ended in the meantime.
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mask = |set| u64::from_str_radix(&field(&status, set), 16).expect("a mask");
        Some(Thread {
            name: field(&status, "Name"),
            is_main: task.file_name().to_str() == Some(&process.to_string()),
            effective: mask("CapEff"),
            permitted: mask("CapPrm"),
        })
    });
    threads.collect()
}

/// Capabilities that every thread keeps for timing.
const TIMING: u64 = SYS_NICE | IPC_LOCK;

/// Asserts that threads keep only capabilities for timing, for reading traces, `needed` and `more`,
/// and that the main thread, from which packet threads inherit, keeps those for timing and
/// `needed`. The main thread drops its privileges shortly after it reports that it is running.
#[track_caller]
fn assert_given_up(running: &Live, needed: u64, more: u64) {
    let allowed = TIMING | DAC_READ_SEARCH | needed | more;
    wait_for("unneeded capabilities", || {
        let mut found = capabilities(running.id());
        assert!(found.iter().any(|thread| thread.is_main), "{found:?}");
        for thread in &found {
            let kept = thread.effective;
            assert_eq!(kept & TIMING, TIMING, "{thread:x?}");
            assert!(!thread.is_main || kept & needed == needed, "{thread:x?}");
        }
        found.retain(|thread| (thread.effective | thread.permitted) & !allowed != 0);
        if found.is_empty() { Ok(()) } else { Err(found) }
    });
}

fn place() -> Option<NetNamespace> {
    wired(&[("a0", "a1"), ("b0", "b1")])
}

#[test]
fn a_run_keeps_the_rights_for_timing_and_restoring() {
    let Some(place) = place() else { return };
    let dir = Folder::new();
    let (trace, socket) = (dir.file("a.pcap"), dir.file("a.sock"));
    write(&trace, pcap(&[(0, 100), (1_000_000, 100)]));
    let sends = "sending to";
    for (line, ready, needed, more) in [
        ("run packet:a0 packet:b0", RUNS, NET_ADMIN, 0),
        ("receive packet:a1 --witness", RECEIVES, NET_ADMIN, 0),
        // TAP devices created by a run cease to exist with it, so nothing needs restoring.
        ("run tap:lw0 tap:lw1", RUNS, 0, 0),
        // A network also reads files, and removes its socket at the end.
        (
            &format!("run a0 b0 --control {socket}"),
            RUNS,
            NET_ADMIN,
            DAC_OVERRIDE,
        ),
        (
            &format!("replay {trace} --to a0 --loop 0 --receive a1"),
            sends,
            NET_ADMIN,
            0,
        ),
        (
            "generate --to b0 --rate 1kpps --time 1min",
            sends,
            NET_ADMIN,
            0,
        ),
    ] {
        let running = start(&place, line, ready);
        assert_given_up(&running, needed, more);
    }
}

#[test]
fn a_command_behind_a_link_has_the_rights_of_its_user() {
    const KILL: u64 = 1 << 5;
    let Some(place) = place() else { return };
    let script = "sleep 1; grep CapEff /proc/self/status; grep -h CapEff /proc/$PPID/task/*/status";
    let ran = run_in(&place, format!("longwire exec -q -- sh -c '{script}'")).well();
    let mask = |text: &str| u64::from_str_radix(text, 16).expect("a mask");
    let masks = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let masks: Vec<u64> = masks.map(mask).collect();
    let own = mask(&status_of(std::process::id(), "CapEff"));
    assert_eq!(masks[0], own, "the command's own");
    let allowed = TIMING | NET_ADMIN | DAC_READ_SEARCH | KILL;
    assert!(masks.len() > 2, "{ran:?}");
    for mask in &masks[1..] {
        assert_eq!(mask & !allowed, 0, "{ran:?}");
        assert_eq!(mask & TIMING, TIMING, "{ran:?}");
    }
}
