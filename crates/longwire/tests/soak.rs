//! A long run: TCP over a link whose options keep changing.
//!
//! Runs for `LONGWIRE_SOAK_SECONDS`, or a few seconds by default: `cargo xtask full`
//! runs it for minutes and records the result.

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{have, longwire};
use longwire_testbed::support::Folder;
use serde_json::Value;

/// Options set in turn; together they switch between plain and managed queues of every
/// kind.
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

/// Returns a process's resident memory in KiB.
fn resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns whether `exec` works here; in CI it must.
fn possible() -> bool {
    let ran = longwire(&["exec", "-q", "--", "true"]);
    assert!(ran.code == 0 || std::env::var_os("CI").is_none(), "{ran:?}");
    ran.code == 0
}

/// Returns whether the process ends soon: detects hangs, not slowness.
fn ends(child: &mut Child) -> bool {
    (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().expect("a child").is_some()
    })
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
    let longwire = env!("CARGO_BIN_EXE_longwire");
    let traffic = format!("iperf3 -c far -t {seconds} --bidir");
    let mut child = Command::new(longwire)
        .args([
            "exec",
            "--delay",
            "5ms",
            "--rate",
            "50mbit",
            "--control",
            &socket,
        ])
        .args(["--report", &report, "--peer", "iperf3 -s -1", "--"])
        .args(["sh", "-c", &traffic])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let start = Instant::now();
    let (mut samples, mut changes) = (Vec::new(), 0);
    while child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(200));
        if !fs::exists(&socket).expect("a directory") {
            continue;
        }
        let options = OPTIONS[changes % OPTIONS.len()].split(' ');
        let mut ctl = Command::new(longwire);
        ctl.args(["ctl", "--control", &socket, "set", "link"])
            .args(options);
        let changed = ctl.output().expect("it starts");
        // A run stops answering before its process has ended.
        assert!(changed.status.success() || ends(&mut child), "{changed:?}");
        changes += 1;
        samples.extend(resident(child.id()));
    }
    assert!(child.wait().expect("a child").success());
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
    let report = fs::read_to_string(&report).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    for link in report["links"].as_array().expect("links") {
        let frames = link["packets_in"].as_u64();
        assert!(frames > Some(100 * seconds), "{link}");
    }
}
