//! Corrupt input, lost ports and stops: frames before the fault are sent once and reported.

use std::ops::RangeInclusive;

use longwire_io::net;
use longwire_testbed::support::{Folder, within};
use nix::sys::signal::Signal;

use crate::common::program::{Capture, Ran, RunningProgram, eventually, longwire, run};
use crate::common::{MS, assert_refused, count, have, records, write};
use crate::replay::wire::{Wire, number_of, pcap_of, trace_of};

/// Length of a trace record, including its header.
const RECORD: usize = 16 + 46;

/// Returns a trace of numbered frames, one per millisecond.
fn trace(frames: u64) -> Vec<u8> {
    trace_of((0..frames).map(|n| n * MS))
}

/// Replays these bytes to a file at ten times their speed; returns the numbers of the frames sent.
fn replay(dir: &Folder, name: &str, bytes: &[u8]) -> (Ran, Vec<u32>) {
    let (trace, out) = (dir.file(name), dir.file("out.pcap"));
    write(&trace, bytes);
    let ran = longwire(format!(
        "replay {trace} --to pcap:out={out} --speed 10x --json"
    ));
    let numbers = records(&out).into_iter().map(|frame| number_of(&frame));
    (ran, numbers.collect())
}

#[test]
fn frames_before_a_fault_are_sent_and_the_fault_is_reported() {
    let dir = Folder::new();
    let whole = trace(2_000);
    let cut = &whole[..24 + RECORD * 1_000 + 30];
    let mut absurd = whole.clone();
    absurd[24 + RECORD * 700 + 8..][..8].fill(0xff);
    for (name, bytes, frames, says) in [
        ("cut.pcap", cut, 1_000..=1_000, "truncated record data"),
        ("absurd.pcap", &absurd, 700..=700, "at byte"),
    ] {
        check_fault(&dir, (name, bytes), frames, says);
    }
}

#[test]
fn a_truncated_compressed_file_is_sent_up_to_its_end() {
    if !have("gzip") {
        return;
    }
    let dir = Folder::new();
    let packed = dir.file("early.pcap");
    write(&packed, trace(2_000));
    run(format!("gzip {packed}")).well();
    let bytes = std::fs::read(dir.file("early.pcap.gz")).expect("packed");
    let early = ("early.gz", &bytes[..bytes.len() / 2]);
    check_fault(&dir, early, 1..=1_999, "truncated gzip stream");
}

/// Checks that the frames read before a trace's fault are sent once, and that the fault is
/// reported.
fn check_fault(
    dir: &Folder,
    (name, bytes): (&str, &[u8]),
    frames: RangeInclusive<usize>,
    says: &str,
) {
    let (ran, sent) = replay(dir, name, bytes);
    let json = ran.exits(1).says(name).says(says).json();
    assert!(json["error"].to_string().contains(says), "{json}");
    assert!(frames.contains(&sent.len()), "{name}: {}", sent.len());
    assert_eq!(sent, (0..sent.len() as u32).collect::<Vec<u32>>(), "{name}");
    assert_eq!(json["links"][0]["packets_out"], sent.len(), "{name}");
    // The total of a faulty input is unknown.
    assert!(json["inputs"][0]["fraction"].is_null(), "{name}");
}

#[test]
fn invalid_options_and_traces_are_refused_before_anything_is_sent() {
    let dir = Folder::new();
    let [private, text, good] = ["private.pcap", "text.pcap", "good.pcap"].map(|it| dir.file(it));
    write(&private, pcap_of(147, [(0, vec![0; 60])]));
    write(&text, "this is no capture");
    write(&good, trace(1));
    let to = format!("--to pcap:out={}", dir.file("none.pcap"));
    let macs = "02:00:00:00:00:01,02:00:00:00:00:02";
    assert_refused(&format!(
        "
        replay {private} {to} | 1 | link type 147
        replay {text} {to} | 1 | neither pcap nor pcapng
        replay {good}.missing {to} | 1 | good.pcap.missing
        replay {good} {to} --filter 'tcp prot 80' | 2 | column 5
        replay {good} {to} --loop many | 2 | --loop
        replay {good} {to} --speed 0x | 2 | --speed
        replay {good} {to} --from soon | 2 | not a position in a trace
        replay {good} {to} --split port --to packet:nowhere9 | 1 | nowhere9
        replay {good} {to} --split port | 2 | --split needs two --to
        replay {good} {to} --down-loss 1% | 2 | --down-loss; replay --split
        generate {to} --rate 1kpps --count 1 --down-rate 1mbit | 2 | --down-rate; replay --split
        replay {good} {to} {to} | 2 | 1 trace for 2 ports
        replay {good} {to} {to} --split colour | 2 | --split
        replay {good} {to} --src-mac {macs} | 2 | --split
        replay - - {to} {to} | 2 | only once
        "
    ));
}

/// A ten-second replay over a wire, with the arrivals at its far end.
struct Midway {
    wire: Wire,
    running: RunningProgram,
    capture: Capture,
    _dir: Folder,
}

impl Midway {
    /// Starts a replay and waits for some arrivals; returns `None` without a wire.
    fn reach() -> Option<Midway> {
        let wire = Wire::new(1).filter(|_| have("dumpcap"))?;
        let dir = Folder::new();
        let file = dir.file("long.pcap");
        write(&file, trace(10_000));
        let capture = Capture::start(&dir, "arrived.pcap", &wire.far, "-i far0");
        let running = wire.replay(&format!("{file} --to near0 --json"));
        eventually("nothing is sent", || wire.arrived(0) >= 100);
        Some(Midway {
            wire,
            running,
            capture,
            _dir: dir,
        })
    }

    /// Waits for the replay to end. Asserts that every frame reported as sent arrived once, except
    /// for at most `lost_max` frames lost by the receiver's device.
    fn end(self, lost_max: u64) -> (Ran, u64) {
        let ran = self.running.end();
        let json = ran.json();
        let out = count(&json["links"][0]["packets_out"]);
        let artifacts = &json["ports"][0]["artifacts"];
        let sent = out - count(&artifacts["send_failed"]) - count(&artifacts["no_carrier"]);
        let expected = sent.saturating_sub(lost_max).max(1) as usize;
        let arrived = records(&self.capture.with_frames(expected));
        let numbers: Vec<u32> = arrived.iter().map(|frame| number_of(frame)).collect();
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
        within(&midway.wire.near, || gone("near0"));
        // The last frames on a deleted device cannot be read.
        let (ran, out) = midway.end(if what == "deleted" { u64::MAX } else { 0 });
        let json = ran.exits(1).says("near0 is gone").json();
        assert!(
            json["error"].to_string().contains("near0 is gone"),
            "{what}: {json}"
        );
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
        let json = ran.well().json();
        assert!(json["error"].is_null(), "{signal}: {json}");
        let link = &json["links"][0];
        let waiting = count(&link["in_flight"]);
        assert_eq!(link["packets_in"], out + waiting, "{signal}");
        assert_eq!(json["verdict"]["grade"], "not-faithful", "{signal}");
    }
}

/// A long gap is announced, and a replay stopped during the gap is not faithful.
#[test]
fn a_gap_of_hours_is_announced() {
    let Some(wire) = Wire::new(1) else { return };
    let dir = Folder::new();
    let file = dir.file("gap.pcap");
    write(
        &file,
        trace_of([0, 18, 19, 20].map(|hours| hours * 3_600_000 * MS)),
    );
    let running = wire
        .replay(&format!("{file} --to near0"))
        .ready("due in 18 hours");
    wire.expect_arrived(0, 1);
    let says = "stopped at 25.0% of its input: 1 frame sent, 3 read but not sent";
    running.stop().prints(says);
}

#[test]
fn less_than_is_required_is_exit_code_3() {
    let dir = Folder::new();
    let (good, out) = (dir.file("good.pcap"), dir.file("out.pcap"));
    write(&good, trace(100));
    for (required, code) in [("packets_out=100,drops=0", 0), ("packets_out>100", 3)] {
        let require = format!("--speed 10x --require {required} --json");
        let ran = longwire(format!("replay {good} --to pcap:out={out} {require}")).exits(code);
        assert_eq!(ran.json()["links"][0]["packets_out"], 100);
        let said = ran.stderr.contains("not met: packets_out>100");
        assert_eq!(said, code == 3, "{ran:?}");
    }
}
