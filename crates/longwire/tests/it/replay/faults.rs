//! Corrupt input, lost ports and stops: earlier frames are sent once and reported.

use std::ops::RangeInclusive;
use std::process::Command;

use longwire_io::net;
use longwire_testbed::support::{Folder, rows};
use nix::sys::signal::Signal;

use crate::common::process::{Capture, RunningProgram, eventually, records, wait_for_word};
use crate::common::{Ran, have, longwire, write};
use crate::replay::frames::{TimedFrames, number_of, numbered};
use crate::replay::wire::{Wire, pcap_of};

const MS: u64 = 1_000_000;

/// Length of a record of these traces, with its header.
const RECORD: usize = 16 + 46;

/// Returns a trace of numbered frames, one per millisecond.
fn trace(frames: u32) -> Vec<u8> {
    let frames: TimedFrames = (0..frames)
        .map(|n| (u64::from(n) * MS, numbered(true, n)))
        .collect();
    pcap_of(1, &frames)
}

/// Replays these bytes at ten times their speed to a file; returns the numbers of the
/// frames sent.
fn replay(dir: &Folder, name: &str, bytes: &[u8]) -> (Ran, Vec<u32>) {
    let (trace, out) = (dir.file(name), dir.file("out.pcap"));
    write(&trace, bytes);
    let to = format!("pcap:out={out}");
    let ran = longwire(&["replay", &trace, "--to", &to, "--speed", "10x", "--json"]);
    let numbers = records(&out).into_iter().map(|frame| number_of(&frame));
    (ran, numbers.collect())
}

#[test]
fn frames_before_a_fault_are_sent_and_the_fault_is_reported() {
    let dir = Folder::new();
    let whole = trace(2_000);
    let cut = whole[..24 + RECORD * 1_000 + 30].to_vec();
    let mut absurd = whole.clone();
    absurd[24 + RECORD * 700 + 8..][..8].fill(0xff);
    let cases = [
        ("cut.pcap", cut, 1_000..=1_000, "truncated record data"),
        ("absurd.pcap", absurd, 700..=700, "at byte"),
    ];
    for (name, bytes, frames, says) in cases {
        check_fault(&dir, (name, &bytes), frames, says);
    }
}

#[test]
fn a_truncated_compressed_file_is_sent_up_to_its_end() {
    if !have("gzip") {
        return;
    }
    let dir = Folder::new();
    let packed = dir.file("early.pcap");
    write(&packed, &trace(2_000));
    let run = Command::new("gzip").arg(&packed).status();
    assert!(run.is_ok_and(|status| status.success()));
    let bytes = std::fs::read(dir.file("early.pcap.gz")).expect("packed");
    let early = ("early.gz", &bytes[..bytes.len() / 2]);
    check_fault(&dir, early, 1..=1_999, "truncated gzip stream");
}

/// Checks that the frames read from a faulty trace are sent once, and that the fault is
/// reported.
fn check_fault(
    dir: &Folder,
    (name, bytes): (&str, &[u8]),
    frames: RangeInclusive<usize>,
    says: &str,
) {
    let (ran, sent) = replay(dir, name, bytes);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains(name) && ran.stderr.contains(says),
        "{ran:?}"
    );
    let json = ran.json();
    assert!(
        json["error"]
            .as_str()
            .is_some_and(|error| error.contains(says))
    );
    assert!(frames.contains(&sent.len()), "{name}: {}", sent.len());
    assert_eq!(sent, (0..sent.len() as u32).collect::<Vec<u32>>(), "{name}");
    assert_eq!(json["links"][0]["packets_out"], sent.len(), "{name}");
    // Its total is unknown.
    assert!(json["inputs"][0]["fraction"].is_null(), "{name}");
}

#[test]
fn odd_records_are_left_out_or_kept_in_their_place_and_counted() {
    let dir = Folder::new();
    let mut frames: TimedFrames = (0..6)
        .map(|n| (n * 10 * MS, numbered(true, n as u32)))
        .collect();
    // Two timestamps go backwards, one frame is empty, and one has an incomplete
    // header.
    (frames[2].0, frames[3].0) = (5 * MS, 7 * MS);
    frames.insert(1, (MS, Vec::new()));
    frames.insert(1, (MS, vec![1; 13]));
    let (ran, sent) = replay(&dir, "odd.pcap", &pcap_of(1, &frames));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(sent, [0, 1, 2, 3, 4, 5]);
    let json = ran.json();
    let input = &json["inputs"][0];
    assert_eq!(input["counts"]["set_back"], 2);
    assert_eq!(input["counts"]["too_short"], 2);
    assert_eq!(input["notes"].as_array().map(Vec::len), Some(2), "{input}");
}

#[test]
fn invalid_traces_are_refused_before_anything_is_sent() {
    let dir = Folder::new();
    let (ran, _) = replay(&dir, "private.pcap", &pcap_of(147, &[(0, vec![0; 60])]));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("link type 147"), "{ran:?}");
    let (ran, _) = replay(&dir, "text.pcap", b"this is no capture");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("neither pcap nor pcapng"), "{ran:?}");
    let good = dir.file("good.pcap");
    write(&good, &trace(1));
    let to = format!("pcap:out={}", dir.file("none.pcap"));
    for [option, value, code, says] in rows(
        "
        --filter | tcp prot 80 | 2 | column 5
        --loop | many | 2 | --loop
        --speed | 0x | 2 | --speed
        --from | soon | 2 | not a position in a trace
        --to | packet:nowhere9 | 1 | nowhere9
        ",
    ) {
        let split: &[&str] = if option == "--to" {
            &["--split", "port"]
        } else {
            &[]
        };
        let replay = ["replay", &good, "--to", &to, "--json", option, value];
        let ran = longwire(&[&replay, split].concat());
        let ended = (ran.code.to_string(), ran.stdout.as_str());
        assert_eq!(ended, (code.to_owned(), ""), "{option} {value}: {ran:?}");
        assert!(ran.stderr.contains(says), "{option} {value}: {ran:?}");
    }
    let ran = longwire(&["replay", &dir.file("missing.pcap"), "--to", &to]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("missing.pcap"), "{ran:?}");
}

/// A replay of ten seconds over a wire, and its arrivals.
struct Midway {
    wire: Wire,
    running: RunningProgram,
    capture: Capture,
    _dir: Folder,
}

impl Midway {
    /// Returns a replay after some frames have arrived; `None` without a wire.
    fn reach() -> Option<Midway> {
        let wire = Wire::new(1, 1_500).filter(|_| have("dumpcap"))?;
        let dir = Folder::new();
        let file = dir.file("long.pcap");
        write(&file, &trace(10_000));
        let capture = Capture::start(&dir, "arrived.pcap", &wire.far, &["-i", "far0"]);
        let running = wire.start(&["replay", &file, "--to", "near0", "--json"]);
        eventually("nothing is sent", || wire.arrived(0) >= 100);
        Some(Midway {
            wire,
            running,
            capture,
            _dir: dir,
        })
    }

    /// Waits for the replay to end. Asserts that every frame reported as sent arrived
    /// once, except up to `lost_max` that the receiver's device lost.
    fn end(self, lost_max: u64) -> (Ran, u64) {
        let ran = self.running.end();
        let json = ran.json();
        let link = &json["links"][0];
        let out = link["packets_out"].as_u64().expect("a count");
        let lost =
            ["send_failed", "no_carrier"].map(|kind| json["ports"][0]["artifacts"][kind].as_u64());
        let sent = out - lost.into_iter().flatten().sum::<u64>();
        let expected = sent.saturating_sub(lost_max).max(1) as usize;
        let numbers: Vec<u32> = records(&self.capture.with_frames(expected))
            .iter()
            .map(|frame| number_of(frame))
            .collect();
        let came = numbers.len() as u64;
        assert!(
            came <= sent && sent - came <= lost_max,
            "{came} of {sent}: {ran:?}"
        );
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert!((100..10_000).contains(&sent), "{ran:?}");
        (ran, out)
    }
}

#[test]
fn a_port_that_is_set_down_or_deleted_ends_the_replay() {
    for (what, gone) in [
        ("down", net::link_down as fn(&str) -> _),
        ("deleted", net::link_delete),
    ] {
        let Some(midway) = Midway::reach() else {
            return;
        };
        let done = midway.wire.near.run(|| gone("near0"));
        done.expect("it is entered").expect("it was there");
        // The last frames on a deleted device are unreadable.
        let (ran, out) = midway.end(if what == "deleted" { u64::MAX } else { 0 });
        assert_eq!(ran.code, 1, "{what}: {ran:?}");
        assert!(ran.stderr.contains("near0 is gone"), "{what}: {ran:?}");
        let json = ran.json();
        let error = json["error"].as_str().unwrap_or_default();
        assert!(error.contains("near0 is gone"), "{what}: {json}");
        assert!(out < 10_000, "{what}");
    }
}

#[test]
fn a_signal_ends_the_replay_with_its_report() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let Some(midway) = Midway::reach() else {
            return;
        };
        midway.running.signal(signal);
        let (ran, out) = midway.end(0);
        assert_eq!(ran.code, 0, "{signal}: {ran:?}");
        let json = ran.json();
        assert!(json["error"].is_null(), "{signal}: {json}");
        let waiting = json["links"][0]["in_flight"].as_u64().expect("a count");
        assert_eq!(json["links"][0]["packets_in"], out + waiting, "{signal}");
        assert_eq!(json["verdict"]["grade"], "not-faithful", "{signal}");
    }
}

/// A long gap is announced, and a replay that is stopped in it is not faithful.
#[test]
fn a_gap_of_hours_is_announced() {
    let Some(wire) = Wire::new(1, 1_500) else {
        return;
    };
    let dir = Folder::new();
    let file = dir.file("gap.pcap");
    let times = [0, 18, 19, 20].map(|hours| hours * 3_600_000 * MS);
    let frames = times
        .iter()
        .zip(0..)
        .map(|(at, n)| (*at, numbered(true, n)));
    write(&file, &pcap_of(1, &frames.collect::<TimedFrames>()));
    let mut running = wire.start(&["replay", &file, "--to", "near0"]);
    wait_for_word(&mut running, "due in 18 hours");
    wire.expect_arrived(0, 1);
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let says = "stopped at 25.0% of its input: 1 frame sent, 3 read but not sent";
    assert!(ran.stdout.contains(says), "{ran:?}");
}

#[test]
fn less_than_is_required_is_exit_code_3() {
    let dir = Folder::new();
    let good = dir.file("good.pcap");
    write(&good, &trace(100));
    let to = format!("pcap:out={}", dir.file("out.pcap"));
    for (required, code) in [("packets_out=100,drops=0", 0), ("packets_out>100", 3)] {
        let command = ["replay", &good, "--to", &to, "--speed", "10x"];
        let ran = longwire(&[&command[..], &["--require", required, "--json"]].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(ran.json()["links"][0]["packets_out"], 100);
        let said = ran.stderr.contains("not met: packets_out>100");
        assert_eq!(said, code == 3, "{ran:?}");
    }
}
