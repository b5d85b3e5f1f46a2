//! Number and times of frames sent: rounds, parts of a trace, rates. The output is a capture file,
//! which needs no privileges.

use longwire_testbed::support::Folder;

use crate::common::program::{Ran, longwire, run, run_in};
use crate::common::{MS, frames, write};
use crate::replay::wire::{Wire, trace_of};

/// Writes a trace of 100 frames, 2 ms apart; returns its path.
fn trace(dir: &Folder) -> String {
    let file = dir.file("trace.pcap");
    write(&file, trace_of((0..100).map(|n| n * 2 * MS)));
    file
}

/// Replays to a file; returns departure times in microseconds since the first.
fn replay(dir: &Folder, options: &str) -> (Ran, Vec<u64>) {
    let (trace, out) = (trace(dir), dir.file("out.pcap"));
    let ran = longwire(format!(
        "replay {trace} --to pcap:out={out} --json {options}"
    ))
    .well();
    let stamps: Vec<u64> = frames(&out).iter().map(|(stamp, _)| *stamp).collect();
    let first = stamps.first().copied().unwrap_or(0);
    let times = stamps.iter().map(|stamp| (stamp - first) / 1_000);
    (ran, times.collect())
}

#[test]
fn the_requested_number_of_frames_is_sent_on_time() {
    let dir = Folder::new();
    // Each row has options, the gap in microseconds, and the number of frames.
    for (options, gap, count) in [
        ("", 2_000, 100),
        ("--count 7", 2_000, 7),
        ("--count 0", 0, 0),
        ("--loop 3 --speed 10x", 200, 300),
        ("--loop 0 --count 250 --speed 10x", 200, 250),
        ("--from 100ms", 2_000, 50),
        ("--until 50ms", 2_000, 25),
        ("--from 10ms --until 20ms --loop 2", 2_000, 10),
        ("--from 10s", 0, 0),
        ("--rate 5kpps", 200, 100),
        // A 46-byte frame occupies the Ethernet minimum of 672 bits.
        (
            "--rate 672kbit --rate-framing ethernet --count 20",
            1_000,
            20,
        ),
        ("--gap-cap 100us --speed 0.5x", 200, 100),
    ] {
        let (ran, times) = replay(&dir, options);
        let expected: Vec<u64> = (0..count).map(|n| n * gap).collect();
        assert_eq!(times, expected, "{options:?}");
        let json = ran.json();
        assert_eq!(json["links"][0]["packets_out"], count);
        if options == "--until 50ms" {
            assert_eq!(json["inputs"][0]["counts"]["outside_window"], 75);
        }
    }
}

#[test]
fn a_gap_between_rounds_is_kept() {
    let dir = Folder::new();
    let (ran, times) = replay(&dir, "--loop 2 --loop-gap 30ms");
    assert_eq!(times[99..102], [198_000, 228_000, 230_000]);
    assert_eq!(ran.json()["inputs"][0]["counts"]["rounds"], 2);
}

/// Returns a command line that replays a trace from a pipe that stalls after 1,000 bytes.
fn slow_pipe(trace: &str, stall: &str, to: &str) -> String {
    let longwire = env!("CARGO_BIN_EXE_longwire");
    let pipe = format!("(head -c 1000; sleep {stall}; cat) < {trace}");
    format!("sh -c '{pipe} | {longwire} replay - --json --to {to}'")
}

#[test]
fn a_pipe_is_sent_as_it_is_read() {
    let dir = Folder::new();
    let (trace, out) = (trace(&dir), dir.file("out.pcap"));
    let ran = run(slow_pipe(&trace, "0.3", &format!("pcap:out={out}"))).well();
    assert_eq!(frames(&out).len(), 100);
    assert_eq!(ran.json()["inputs"][0]["name"], "standard input");
}

/// Skipping the beginning of a trace takes time; the replay starts afterwards. If it started before,
/// every frame would be behind by 1.8 s. On a busy machine, frames are behind by milliseconds.
#[test]
fn times_count_from_the_first_frame_that_is_found() {
    let Some(wire) = Wire::new(1) else { return };
    let dir = Folder::new();
    let line = slow_pipe(&trace(&dir), "2", "near0 --from 180ms");
    let report = run_in(&wire.near, line).well().json();
    assert_eq!(report["links"][0]["packets_out"], 10);
    let behind_us = report["inputs"][0]["behind_max_us"].as_f64();
    assert!(behind_us.is_some_and(|us| us < 1e6), "{report}");
}
