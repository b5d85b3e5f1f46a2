//! A recorded live network, and a simulation of its captures with the same file, seed
//! and epoch: every link makes the same decision for every frame, to the nanosecond,
//! while a scenario changes the links. Needs namespaces and iperf3; without them, the
//! test passes without running, except in CI.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::process::RunningProgram;
use crate::common::recording::decided;
use crate::common::site::{Site, assert_nothing_lost, link};
use crate::common::{have, longwire, write};
use longwire_capture::CaptureReader;
use longwire_testbed::support::{Folder, words};
use serde_json::Value;

/// Stations 10.9.0.1 to 3 on a bridge: a link with jitter and loss after CoDel, a path
/// of two links, one of them shared by both directions, and ARP outside of all links.
const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"
rate = "20mbit"
queue = "codel"
delay = "uniform:min=3ms,max=6ms"
loss = "0.5%"

[[link]]
name = "access"
rate = "8mbit"
queue = "fq-codel:ecn=true"
shared = true

[[link]]
name = "core"
delay = "normal:mean=4ms,stddev=1ms"
duplicate = "1%"
corrupt = "0.1%"

[[path]]
name = "ac"
via = ["access", "core"]
match = "src=10.9.0.1,dst=10.9.0.3"

[[at]]
time = "1s"
set = { "ab" = { rate = "5mbit" } }
ramp = { "core" = { option = "delay", from = "4ms", to = "9ms", time = "2s", steps = 20 } }

[[at]]
time = "2500ms"
off = ["ab.down"]
move = { "ac" = "ab" }
outage = "150ms"

[[at]]
time = "2700ms"
on = ["ab.down"]
move = { "ac" = "ac" }

[[at]]
time = "3s"
set = { "access" = { rate = "4mbit" } }
every = "300ms"
"#;

/// Runs iperf3 between stations: the second serves, the first sends.
fn iperf3(site: &Site, (from, to): (usize, usize), options: &[&str]) -> [RunningProgram; 2] {
    let address = format!("10.9.0.{}", to + 1);
    let quiet = |arguments: &[&str]| {
        let mut command = Command::new("iperf3");
        command.args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let serving = RunningProgram::start(&site.stations[to], &mut quiet(&["-s", "-1"]));
    std::thread::sleep(Duration::from_millis(500));
    let arguments = [&["-c", &address, "-t", "4"][..], options].concat();
    let sending = RunningProgram::start(&site.stations[from], &mut quiet(&arguments));
    [serving, sending]
}

/// Counts the frames of each interface of a capture, by their bytes.
fn frames(file: &str) -> HashMap<(String, Vec<u8>), u64> {
    let mut reader = CaptureReader::open(file).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = HashMap::new();
    while let Some(record) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        let (interface, bytes) = (record.interface, record.bytes.to_vec());
        let name = reader.interface_name(interface).expect("a name").to_owned();
        *frames.entry((name, bytes)).or_default() += 1;
    }
    frames
}

/// Runs the network with traffic over all its links; returns its report.
fn record(site: &Site, dir: &Folder, file: &str) -> Value {
    let (prefix, log) = (dir.file("run"), dir.file("live.csv"));
    let running = site.start_with(&words(&format!(
        "{file} --tolerance 1ns --seed 7 --capture {prefix} --log {log}"
    )));
    let talks = [
        iperf3(site, (0, 1), &[]),
        iperf3(site, (0, 2), &["-u", "-b", "12M"]),
    ];
    let pings = ["ping", "-q", "-c", "150", "-i", "0.02", "10.9.0.2"];
    site.at(0, &pings);
    site.at(2, &["ping", "-q", "-c", "50", "-i", "0.01", "10.9.0.1"]);
    std::thread::sleep(Duration::from_secs(1));
    drop(talks);
    running.stop()
}

#[test]
fn a_recorded_network_decides_the_same_again() {
    if !have("iperf3") {
        return;
    }
    let Some(site) = Site::new(3) else { return };
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let report = record(&site, &dir, &file);
    assert_nothing_lost(&report);
    assert_eq!(report["unrecorded"], 0, "{report}");
    println!("moved: {}", report["moved"]);

    let (log, out) = (dir.file("off.csv"), dir.file("off.pcapng"));
    let epoch = report["epoch_ns"].to_string();
    let input = dir.file("run.in.pcapng");
    let arguments = [
        "simulate", &file, "--in", &input, "--out", &out, "--log", &log, "--seed", "7", "--epoch",
        &epoch, "--json",
    ];
    let simulated = longwire(&arguments);
    assert_eq!(simulated.code, 0, "{simulated:?}");
    let offline = simulated.json();

    for name in ["ab.up", "ab.down", "access", "core.up", "core.down"] {
        let (live, again) = (decided(&dir.file("live.csv"), name), decided(&log, name));
        assert!(live.len() > 50, "{name}: {} rows", live.len());
        for (frame, row) in &live {
            assert_eq!(Some(row), again.get(frame), "{name}");
        }
    }
    // Frames lost during a move are in both logs and in the report.
    let moved = link(&report, "ab.up")["drops"]["handover"].as_u64();
    assert!(moved > Some(0), "{report}");
    let rows = decided(&dir.file("live.csv"), "ab.up");
    let rows = rows
        .values()
        .filter(|row| format!("{row:?}").contains("handover"));
    assert_eq!(Some(rows.count() as u64), moved);
    // The scenario ran, on time.
    let changes = |report: &Value| report["changes"]["made"].as_array().cloned();
    let (live, again) = (changes(&report), changes(&offline));
    let (live, again) = (live.expect("changes"), again.expect("changes"));
    assert!(live.len() > 8, "{live:?}");
    let ramps = live
        .iter()
        .filter(|done| done["change"]["ramp"].is_object());
    let ramps: Vec<_> = ramps.map(|done| &done["links"]).collect();
    // A ramp's 21 steps, each in both directions, are one change of one link.
    assert_eq!(ramps, [1]);
    let both = live.len().min(again.len());
    assert!(both > 8 && live[..both] == again[..both], "{again:?}");
    assert!(link(&report, "ab.down")["drops"]["outage"].as_u64() > Some(0));
    assert_eq!(report["passed"], offline["passed"]);
    assert_eq!(report["switch"], offline["switch"]);

    // The output frames are identical.
    let (live, again) = (frames(&dir.file("run.out.pcapng")), frames(&out));
    assert!(live.values().sum::<u64>() > 1_000);
    for (frame, times) in &live {
        let other = again.get(frame).copied().unwrap_or(0);
        assert!(*times <= other, "{times} and {other} times: {frame:?}");
    }
}
