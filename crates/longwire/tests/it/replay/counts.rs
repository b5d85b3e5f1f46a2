//! Number and times of frames sent: rounds, parts of a trace, rates. The output is a
//! capture file, which needs no rights.

use std::process::Command;

use crate::common::{Ran, frames, longwire, write};
use crate::replay::frames::{TimedFrames, numbered};
use crate::replay::wire::{Wire, pcap_of};
use longwire_testbed::support::{Folder, words};

const MS: u64 = 1_000_000;

/// 100 frames 2 ms apart.
fn trace(dir: &Folder) -> String {
    let frames: TimedFrames = (0..100)
        .map(|n| (n * 2 * MS, numbered(true, n as u32)))
        .collect();
    let file = dir.file("trace.pcap");
    write(&file, &pcap_of(1, &frames));
    file
}

/// Replays to a file; returns departure times in microseconds since the first.
fn replay(dir: &Folder, options: &[&str]) -> (Ran, Vec<u64>) {
    let trace = trace(dir);
    let out = dir.file("out.pcap");
    let to = format!("pcap:out={out}");
    let command = ["replay", &trace, "--to", &to, "--json"];
    let ran = longwire(&[&command, options].concat());
    let stamps: Vec<u64> = frames(&out).iter().map(|(stamp, _)| *stamp).collect();
    let first = stamps.first().copied().unwrap_or(0);
    let times = stamps.iter().map(|stamp| (stamp - first) / 1_000);
    (ran, times.collect())
}

#[test]
fn the_requested_number_of_frames_is_sent_on_time() {
    let dir = Folder::new();
    let every = |gap: u64, count: u64| (0..count).map(|n| n * gap).collect::<Vec<u64>>();
    let cases: [(&[&str], Vec<u64>); 12] = [
        (&[], every(2_000, 100)),
        (&["--count", "7"], every(2_000, 7)),
        (&["--count", "0"], vec![]),
        (&["--loop", "3", "--speed", "10x"], every(200, 300)),
        (
            &["--loop", "0", "--count", "250", "--speed", "10x"],
            every(200, 250),
        ),
        (&["--from", "100ms"], every(2_000, 50)),
        (&["--until", "50ms"], every(2_000, 25)),
        (
            &["--from", "10ms", "--until", "20ms", "--loop", "2"],
            every(2_000, 10),
        ),
        (&["--from", "10s"], vec![]),
        (&["--rate", "5kpps"], every(200, 100)),
        // Frames of 46 bytes occupy the Ethernet minimum: 672 bits.
        (
            &words("--rate 672kbit --rate-framing ethernet --count 20"),
            every(1_000, 20),
        ),
        (&["--gap-cap", "100us", "--speed", "0.5x"], every(200, 100)),
    ];
    for (options, expected) in cases {
        let (ran, times) = replay(&dir, options);
        assert_eq!(ran.code, 0, "{options:?}: {ran:?}");
        assert_eq!(times, expected, "{options:?}");
        let json = ran.json();
        assert_eq!(json["links"][0]["packets_out"], expected.len());
        let left_out = &json["inputs"][0]["counts"]["outside_window"];
        if options[..].first() == Some(&"--until") {
            assert_eq!(*left_out, 75);
        }
    }
}

#[test]
fn a_gap_between_rounds_is_kept() {
    let dir = Folder::new();
    let (ran, times) = replay(&dir, &["--loop", "2", "--loop-gap", "30ms"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(times[99..102], [198_000, 228_000, 230_000]);
    assert_eq!(ran.json()["inputs"][0]["counts"]["rounds"], 2);
}

#[test]
fn a_pipe_is_sent_as_it_is_read() {
    let dir = Folder::new();
    let (trace, out) = (trace(&dir), dir.file("out.pcap"));
    let command = format!(
        "(head -c 1000; sleep 0.3; cat) < {trace} | {} replay - --to pcap:out={out} --json",
        env!("CARGO_BIN_EXE_longwire")
    );
    let piped = Command::new("sh").args(["-c", &command]).output();
    let ran = crate::common::ran(piped.expect("sh starts"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(frames(&out).len(), 100);
    let input = &ran.json()["inputs"][0];
    assert_eq!(input["name"], "the standard input");
}

/// Skipping frames at the beginning takes time: the replay starts after that.
#[test]
fn times_count_from_the_first_frame_that_is_found() {
    let Some(wire) = Wire::new(1, 1_500) else {
        return;
    };
    let dir = Folder::new();
    let command = format!(
        "(head -c 1000; sleep 0.6; cat) < {} | {} replay - --to near0 --json --from 180ms",
        trace(&dir),
        env!("CARGO_BIN_EXE_longwire")
    );
    let run = || Command::new("sh").args(["-c", &command]).output();
    let piped = wire.near.run(run).expect("it is entered");
    let ran = crate::common::ran(piped.expect("sh starts"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    assert_eq!(report["links"][0]["packets_out"], 10);
    assert_eq!(report["ports"][0]["artifacts"]["behind"], 0);
}

/// Two traces of 100 ms and 30 ms to two ports: rounds begin together.
#[test]
fn traces_side_by_side_stay_in_step() {
    let dir = Folder::new();
    let write_trace = |name: &str, times: &[u64]| {
        let frames: TimedFrames = times
            .iter()
            .map(|at| (at * MS, numbered(true, 1)))
            .collect();
        let file = dir.file(name);
        write(&file, &pcap_of(1, &frames));
        file
    };
    let long = write_trace("long.pcap", &[0, 50, 100]);
    let short = write_trace("short.pcap", &[10, 30]);
    let outs = [dir.file("1.pcap"), dir.file("2.pcap")];
    let to = outs.each_ref().map(|out| format!("pcap:out={out}"));
    let ran = longwire(&[
        "replay", &long, &short, "--to", &to[0], "--to", &to[1], "--loop", "3", "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let stamps = outs.each_ref().map(|out| frames(out));
    let start = stamps[0][0].0;
    let times = stamps.map(|frames| {
        // Each file has its own offset between the clocks, accurate to microseconds.
        let after = frames
            .iter()
            .map(|(stamp, _)| (stamp + MS / 2 - start) / MS);
        after.collect::<Vec<u64>>()
    });
    // 100 ms plus the mean gap of all frames.
    assert_eq!(times[0], [0, 50, 100, 125, 175, 225, 250, 300, 350]);
    assert_eq!(times[1], [10, 30, 135, 155, 260, 280]);
    let together = longwire(&["replay", "-", "-", "--to", &to[0], "--to", &to[1]]);
    assert_eq!(together.code, 2, "{together:?}");
    assert!(together.stderr.contains("only once"), "{together:?}");
}
