//! Records live runs of a link and of a network, and simulates their captures with the same seed
//! and configuration. Verdicts are identical to the nanosecond, and frames byte by byte.
//!
//! Needs namespaces and iperf3; skipped without them, except in CI.

use std::collections::HashMap;
use std::time::Duration;

use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{RunningProgram, json_of, longwire, quiet};
use crate::common::recording::{assert_decided_alike, decided};
use crate::common::site::{Network, Site, assert_nothing_lost};
use crate::common::{captured, have, list, named, read_json, write};
use crate::exec::User;

/// Runs the link live with TCP traffic, simulates the captures, and compares both.
fn assert_same_offline(link: &str) {
    if !have("iperf3") || User::all().is_empty() {
        return;
    }
    let dir = Folder::new();
    let changes = dir.file("changes.toml");
    write(&changes, CHANGES);
    let link = &link.replace("CHANGES", &changes);
    let [prefix, live, report] = ["run", "live.csv", "report.json"].map(|name| dir.file(name));
    let files = format!("--capture {prefix} --log {live} --report {report}");
    let peer = "--seed 7 --peer 'iperf3 -s -1'";
    // iperf3 may fail, because a corrupted frame may end its connection.
    longwire(format!(
        "exec {peer} {files} {link} -- iperf3 -c far -t 1 -J"
    ));
    let report = read_json(&report);
    let run = format!("--seed {} --epoch {}", report["seed"], report["epoch_ns"]);
    let input = dir.file("run.in.pcapng");
    assert_in_time_order(&dir);
    for (at, way, entry, exit) in [(0, "up", "near", "far"), (1, "down", "far", "near")] {
        let artifacts = &report["ports"][at as usize]["artifacts"];
        assert_eq!(artifacts["unrecorded"], 0, "{artifacts}");
        let (output, log) = (dir.file("off.pcapng"), dir.file("off.csv"));
        let own = format!("--interface {entry} --link {way} {run} --log {log}");
        longwire(format!("simulate -q {input} {output} {own} {link}")).well();
        assert_decided_alike(&live, &log, &format!("link.{way}"), 50);
        // Frames are sent with the same bytes and in the same order, no matter how late. With
        // reordering, late frames may also be overtaken.
        if !link.contains("reorder") {
            let mut live = captured(&dir.file("run.out.pcapng"));
            live.retain(|(_, port, _)| port == exit);
            let offline = captured(&output);
            assert!(live.len() > 50 && live.len() <= offline.len());
            let mut pairs = live.iter().zip(&offline);
            assert!(
                pairs.all(|(live, offline)| live.2 == offline.2),
                "{way}: bytes differ"
            );
        }
    }
}

/// Checks the captures of a run with the prefix `run`.
fn assert_in_time_order(dir: &Folder) {
    for capture in ["run.in.pcapng", "run.out.pcapng"] {
        let frames = captured(&dir.file(capture));
        assert!(frames.is_sorted_by_key(|(time, ..)| *time), "{capture}");
    }
}

const CHANGES: &str = r#"
[[at]]
time = "400ms"
set = { "link.up" = { rate = "8mbit" } }
ramp = { "link" = { option = "delay", from = "5ms", to = "9ms", time = "300ms", steps = 20 } }

[[at]]
time = "600ms"
pause = ["link.up"]

[[at]]
time = "620ms"
on = ["link.up"]
"#;

/// A link that decides at arrival, CoDel with jitter, FQ-CoDel with reordering, a rate in steps
/// before DualPI2, and a link that a scenario changes.
#[test]
fn a_recorded_link_decides_the_same_again() {
    for link in [
        "--rate 20mbit --delay normal:mean=5ms,stddev=1ms --loss gilbert-elliott:p=1%,r=40% \
         --duplicate 1% --corrupt 0.1% --rewrite ip:ttl=1",
        "--rate 10mbit --queue codel:ecn=true --delay uniform:min=4ms,max=6ms --loss 0.5%",
        "--rate 10mbit --queue fq-codel --delay exponential:mean=5ms,min=3ms --order reorder \
         --duplicate 1%",
        "--rate steps:at=0s/20mbit;300ms/5mbit;600ms/40mbit,period=1s --queue dualpi2 \
         --delay 5ms --corrupt 0.2%",
        "--rate 20mbit --delay 5ms --loss 0.5% --scenario CHANGES",
    ] {
        assert_same_offline(link);
    }
}

/// Stations 10.9.0.1 to 10.9.0.3 on a bridge: a link with jitter and loss after CoDel; a path of
/// two links, one of them shared by both directions; and ARP, which crosses no link.
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

/// Starts iperf3 between two stations: the second is the server, the first sends.
fn iperf3(site: &Site, (from, to): (usize, usize), options: &str) -> [RunningProgram; 2] {
    let start = |station: usize, line: String| {
        RunningProgram::start(&site.stations[station], &mut quiet(line))
    };
    let serving = start(to, "iperf3 -s -1".to_owned());
    std::thread::sleep(Duration::from_millis(500));
    let sending = start(from, format!("iperf3 -c 10.9.0.{} -t 4 {options}", to + 1));
    [serving, sending]
}

/// Counts the distinct frames of each interface in a capture.
fn counted(file: &str) -> HashMap<(String, Vec<u8>), u64> {
    let mut counts = HashMap::new();
    for (_, interface, bytes) in captured(file) {
        *counts.entry((interface, bytes)).or_default() += 1;
    }
    counts
}

/// Runs the network with traffic over all its links; returns its report.
fn record(site: &Site, dir: &Folder) -> Value {
    let (prefix, log) = (dir.file("run"), dir.file("live.csv"));
    let options = format!("--tolerance 1ns --seed 7 --capture {prefix} --log {log}");
    let running: Network = site.start_network(dir, NETWORK, &options);
    let talks = [iperf3(site, (0, 1), ""), iperf3(site, (0, 2), "-u -b 12M")];
    site.at(0, "ping -q -c 150 -i 0.02 10.9.0.2");
    site.at(2, "ping -q -c 50 -i 0.01 10.9.0.1");
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
    let report = record(&site, &dir);
    assert_nothing_lost(&report);
    assert_eq!(report["unrecorded"], 0, "{report}");
    assert_in_time_order(&dir);
    let [file, input, live] =
        ["network.toml", "run.in.pcapng", "live.csv"].map(|name| dir.file(name));
    let (log, out) = (dir.file("off.csv"), dir.file("off.pcapng"));
    let files = format!("--in {input} --out {out} --log {log}");
    let run = format!("--seed 7 --epoch {} --json", report["epoch_ns"]);
    let offline = json_of(format!("simulate {file} {files} {run}"));

    for link in ["ab.up", "ab.down", "access", "core.up", "core.down"] {
        assert_decided_alike(&live, &log, link, 50);
    }
    // Frames lost because the link moved are in both logs and in the report.
    let links = &report["links"];
    let moved = named(links, "ab.up")["drops"]["handover"].as_u64();
    assert!(moved > Some(0), "{report}");
    let rows = decided(&live, "ab.up").into_values();
    let lost = rows.filter(|row| row.reason.as_deref() == Some("handover"));
    assert_eq!(Some(lost.count() as u64), moved);
    // Both runs made the same changes at the same times.
    let (made, again) = (
        list(&report["changes"]["made"]),
        list(&offline["changes"]["made"]),
    );
    let both = made.len().min(again.len());
    assert!(
        both > 8 && made[..both] == again[..both],
        "{made:?} {again:?}"
    );
    // A ramp of 21 steps, each in both directions, counts as one change of one link.
    let ramps = made
        .iter()
        .filter(|done| done["change"]["ramp"].is_object());
    assert_eq!(ramps.map(|done| &done["links"]).collect::<Vec<_>>(), [1]);
    assert!(named(links, "ab.down")["drops"]["outage"].as_u64() > Some(0));
    assert_eq!(report["passed"], offline["passed"]);
    assert_eq!(report["switch"], offline["switch"]);

    // Every frame that left live also leaves offline, at least as often.
    let (live, again) = (counted(&dir.file("run.out.pcapng")), counted(&out));
    assert!(live.values().sum::<u64>() > 1_000);
    for (frame, times) in &live {
        let other = again.get(frame).copied().unwrap_or(0);
        assert!(*times <= other, "{times} and {other} times: {frame:?}");
    }
}
