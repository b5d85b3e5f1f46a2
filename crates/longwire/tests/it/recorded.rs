//! Recorded live runs, and simulations of their captures with the same seed and
//! configuration: identical verdicts, to the nanosecond, and identical bytes.
//!
//! Needs namespaces and iperf3. Without them, these tests pass without running, except
//! in CI.

use longwire_capture::CaptureReader;
use longwire_testbed::support::{Folder, words};

use crate::common::recording::decided;
use crate::common::{Ran, have, longwire};

/// Returns the frames of a port's interface, or of all.
fn frames(file: &str, port: Option<u32>) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(file).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        if port.is_none_or(|port| record.interface == port) {
            frames.push(record.bytes.to_vec());
        }
    }
    frames
}

/// Records TCP through the link. `None` if namespaces cannot be created.
fn record(dir: &Folder, link: &[&str]) -> Option<Ran> {
    let [prefix, log, report] = ["run", "live.csv", "report.json"].map(|name| dir.file(name));
    let files = format!("--capture {prefix} --log {log} --report {report}");
    let arguments = [
        &["exec", "--json", "--seed", "7", "--peer", "iperf3 -s -1"][..],
        &words(&files),
        link,
        &["--", "iperf3", "-c", "far", "-t", "1", "-J"],
    ];
    let ran = longwire(&arguments.concat());
    let impossible = ran.code == 1 && ran.stderr.contains("namespace");
    assert!(!impossible || std::env::var_os("CI").is_none(), "{ran:?}");
    (!impossible).then_some(ran)
}

/// Runs the link live, then offline on the captures, and compares both.
fn assert_same_offline(link: &[&str]) {
    let dir = Folder::new();
    if !have("iperf3") {
        return;
    }
    // iperf3 may fail: a corrupted frame may end its connection.
    if record(&dir, link).is_none() {
        println!("skipped: no namespaces here");
        return;
    }
    let report = std::fs::read_to_string(dir.file("report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let (seed, epoch) = (report["seed"].to_string(), report["epoch_ns"].to_string());
    let directions = [("up", "near"), ("down", "far")];
    for (at, (direction, entry)) in directions.into_iter().enumerate() {
        let name = format!("link.{direction}");
        let artifacts = &report["ports"][at]["artifacts"];
        assert_eq!(artifacts["unrecorded"], 0, "{artifacts}");
        let input = dir.file("run.in.pcapng");
        let (output, log) = (dir.file("off.pcapng"), dir.file("off.csv"));
        let own = [
            "--interface",
            entry,
            "--link",
            direction,
            "--seed",
            &seed,
            "--epoch",
            &epoch,
            "--log",
            &log,
        ];
        let simulated = longwire(&[&["simulate", "-q", &input, &output], &own[..], link].concat());
        assert_eq!(simulated.code, 0, "{simulated:?}");

        let (live, offline) = (decided(&dir.file("live.csv"), &name), decided(&log, &name));
        assert!(live.len() > 50, "{direction}: {} rows", live.len());
        for (frame, row) in &live {
            assert_eq!(Some(row), offline.get(frame), "{direction} {link:?}");
        }
        // Frames left with the same bytes and in the same order, however late. With
        // reordering, late frames may also be overtaken.
        if !link.contains(&"reorder") {
            let exit = 1 - at as u32;
            let live = frames(&dir.file("run.out.pcapng"), Some(exit));
            let offline = frames(&output, None);
            assert!(live.len() > 50 && live.len() <= offline.len());
            let same = live
                .iter()
                .zip(&offline)
                .take_while(|(a, b)| a == b)
                .count();
            assert_eq!(same, live.len(), "{direction} {link:?}: other bytes");
        }
    }
}

#[test]
fn a_link_that_decides_at_arrival() {
    assert_same_offline(&words(
        "--rate 20mbit --delay normal:mean=5ms,stddev=1ms --loss gilbert-elliott:p=1%,r=40% \
             --duplicate 1% --corrupt 0.1% --rewrite ip:ttl=1",
    ));
}

#[test]
fn codel_and_jitter() {
    assert_same_offline(&words(
        "--rate 10mbit --queue codel:ecn=true --delay uniform:min=4ms,max=6ms --loss 0.5%",
    ));
}

#[test]
fn fq_codel_with_reordering() {
    assert_same_offline(&words(
        "--rate 10mbit --queue fq-codel --delay exponential:mean=5ms,min=3ms --order reorder \
             --duplicate 1%",
    ));
}

#[test]
fn a_rate_in_steps_before_dualpi2() {
    assert_same_offline(&words(
        "--rate steps:at=0s/20mbit;300ms/5mbit;600ms/40mbit,period=1s --queue dualpi2 \
         --delay 5ms --corrupt 0.2%",
    ));
}
