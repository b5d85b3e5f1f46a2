//! A long run: TCP over a link whose options change continually.
//!
//! Runs for `LONGWIRE_SOAK_SECONDS`, by default a few seconds. `cargo xtask full --seconds N` runs
//! it for N seconds, and records the result.

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::program::{RunningProgram, longwire, quiet, status_of};
use common::{count, have, list, read_json};
use longwire_testbed::support::Folder;

/// Options to set in turn. They switch between tail drop and CoDel, FQ-CoDel, DualPI2 and RED.
const OPTIONS: [&str; 8] = [
    "rate=20mbit queue=100p",
    "queue=codel delay=20ms",
    "rate=50mbit loss=0.1% queue=fq-codel",
    "loss=none delay=normal:mean=10ms,stddev=1ms",
    "queue=dualpi2 delay=5ms",
    "queue=red rate=10mbit",
    "duplicate=1% reorder=hold:rate=1%,time=5ms delay=3ms",
    "duplicate=none reorder=none rate=unlimited queue=1000p delay=1ms",
];

/// Returns whether `exec` works on this machine; it must in CI.
fn possible() -> bool {
    let ran = longwire("exec -q -- true");
    assert!(ran.code == 0 || std::env::var_os("CI").is_none(), "{ran:?}");
    ran.code == 0
}

#[test]
fn changes_for_a_long_time_leak_nothing() {
    let seconds = std::env::var("LONGWIRE_SOAK_SECONDS").unwrap_or("4".to_owned());
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    if !have("iperf3") || !possible() {
        return;
    }
    let dir = Folder::new();
    let [socket, report] = ["control.sock", "report.json"].map(|name| dir.file(name));
    let line = format!(
        "longwire exec --delay 5ms --rate 50mbit --control {socket} --report {report} \
         --peer 'iperf3 -s -1' -- iperf3 -c far -t {seconds} --bidir"
    );
    let mut run = RunningProgram::spawn(&mut quiet(line));
    let start = Instant::now();
    let (mut samples, mut changes) = (Vec::new(), 0);
    while run.child().try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(200));
        if !fs::exists(&socket).expect("a directory") {
            continue;
        }
        let options = OPTIONS[changes % OPTIONS.len()];
        if longwire(format!("ctl --control {socket} set link {options}")).code != 0 {
            // A run stops answering shortly before its process ends.
            break;
        }
        changes += 1;
        let memory = status_of(run.id(), "VmRSS");
        samples.extend(
            memory
                .split(' ')
                .next()
                .and_then(|size| size.parse::<u64>().ok()),
        );
    }
    run.end().well();
    let [early, late] = [samples.len() / 4, 3 * samples.len() / 4].map(|from| {
        let quarter = &samples[from..from + samples.len() / 4];
        *quarter.iter().max().expect("a sample in each quarter")
    });
    println!(
        "{changes} changes in {:?}, {early} KiB, then {late}",
        start.elapsed()
    );
    assert!(
        late < early + early / 10 + 2_048,
        "{early} KiB grew to {late}"
    );
    for link in list(&read_json(&report)["links"]) {
        assert!(count(&link["packets_in"]) > 100 * seconds, "{link}");
    }
}
