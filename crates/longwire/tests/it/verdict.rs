//! Verdicts on real runs: faults are named, and `--require` fails because of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::process::TIMEOUT;
use crate::common::{Ran, have, longwire, ran};
use longwire_testbed::support::{Folder, skip, words};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The line that the documents recommend for CI.
const CI: &str = "nearly-faithful,packets_in>0";

/// Returns the total of one kind of artifact over all ports of a report.
fn artifacts(report: &serde_json::Value, kind: &str) -> u64 {
    let ports = report["ports"].as_array().expect("ports");
    let counts = ports.iter().map(|port| port["artifacts"][kind].as_u64());
    counts.map(|count| count.expect("a count")).sum()
}

/// Returns the number of frames later than `bound` microseconds, over all ports, from
/// histogram ranges entirely above it.
fn count_later_than(report: &serde_json::Value, bound: f64) -> u64 {
    let ports = report["ports"].as_array().expect("ports").iter();
    let ranges = ports.flat_map(|port| port["lateness_histogram_us"].as_array().expect("ranges"));
    // Upper bounds are 1, 2 and 5 of each decade, and null above a second.
    let later = ranges.filter(|range| range[0].as_f64().unwrap_or(f64::INFINITY) / 2.5 >= bound);
    later.map(|range| range[1].as_u64().expect("a count")).sum()
}

/// Returns whether namespaces can be created; in CI they must.
fn possible(stderr: &str, code: i32) -> bool {
    let impossible = code == 1 && stderr.contains("namespace");
    !impossible || skip::<()>(stderr).is_some()
}

fn read(path: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_stopped_process_is_named_and_fails_the_requirement() {
    if !have("ping") {
        return;
    }
    let dir = Folder::new();
    let (report, begun) = (dir.file("report.json"), dir.file("begun"));
    let child = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(words(&format!(
            "exec --delay 20ms --require {CI} --report {report}"
        )))
        .args(["--", "sh", "-c"])
        .arg(format!("touch {begun}; exec ping -q -i 0.01 -c 200 far"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = Pid::from_raw(child.id() as i32);
    let start = Instant::now();
    while !Path::new(&begun).exists() && start.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    let stopped = kill(pid, Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(1_200));
    let _ = kill(pid, Signal::SIGCONT);
    let ran = ran(child.wait_with_output().expect("it ends"));
    if !possible(&ran.stderr, ran.code) {
        return;
    }
    stopped.expect("it was running");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("the process was stopped"), "{ran:?}");
    let report = read(&report);
    assert!(report["stops"]["count"].as_u64() >= Some(1), "{report}");
    let longest = report["stops"]["max_us"].as_f64().expect("a time");
    assert!(longest > 400_000.0, "{report}");
    // A stop of the process is not a pause of the machine. There may be pauses as well:
    // one above 100 ms excuses nothing, and none is measured during the stop.
    let stopped = count_later_than(&report, 300_000.0);
    let late = artifacts(&report, "late");
    assert!(stopped > 0 && late >= stopped, "{stopped}: {report}");
}

/// Runs a link whose frames need more memory than available.
fn without_memory(report: &str) -> Option<Ran> {
    if !have("ping") {
        return None;
    }
    let ran = longwire(&words(&format!(
        "exec --delay 1s --memory 256kb --require {CI} --report {report} -- \
         ping -q -i 0.002 -s 1400 -c 300 far"
    )));
    possible(&ran.stderr, ran.code).then_some(ran)
}

#[test]
fn too_little_memory_is_named_and_fails_the_requirement() {
    let dir = Folder::new();
    let report = dir.file("report.json");
    let Some(ran) = without_memory(&report) else {
        return;
    };
    assert_eq!(ran.code, 3, "{ran:?}");
    let line = "not faithful: the emulator lost frames";
    assert!(ran.stderr.contains(line), "{ran:?}");
    assert!(ran.stderr.contains("raise --memory"), "{ran:?}");
    assert!(ran.stderr.contains("not met: nearly-faithful"), "{ran:?}");
    assert!(artifacts(&read(&report), "memory") > 0, "{ran:?}");
}
