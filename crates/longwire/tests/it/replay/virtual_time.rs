//! `replay --to pcap:FILE` rewrites captures in virtual time.

use longwire_testbed::support::Folder;

use crate::common::program::{json_of, longwire};
use crate::common::{EPOCH, assert_refused, frames, records, write};
use crate::replay::wire::{number_of, numbered, pcap_of};

const HOUR: u64 = 3_600_000_000_000;

/// Writes a trace with one query and its response per hour; returns the path.
fn trace(dir: &Folder) -> String {
    let time = |n: u32| u64::from(n / 2) * HOUR + u64::from(n) * 7;
    let file = dir.file("hours.pcap");
    write(
        &file,
        pcap_of(1, (0..10).map(|n| (time(n), numbered(n % 2 == 0, n)))),
    );
    file
}

#[test]
fn frames_are_rewritten_and_keep_their_stamps() {
    let dir = Folder::new();
    let (trace, out) = (trace(&dir), dir.file("out.pcap"));
    let map = "--map 10.9.0.0/24=192.168.7.0/24 --ttl 9";
    let json = json_of(format!("replay {trace} --to pcap:{out} --json {map}"));
    assert_eq!(json["epoch_ns"], EPOCH);
    assert_eq!(json["links"][0]["packets_out"], 10);
    let verdict = json["verdict"]["line"].as_str().unwrap_or_default();
    assert!(verdict.contains("all exactly on time"), "{verdict}");
    let stamps = |file: &str| -> Vec<u64> { frames(file).iter().map(|frame| frame.0).collect() };
    assert_eq!(stamps(&out), stamps(&trace));
    for (frame, n) in records(&out).iter().zip(0..) {
        assert_eq!((number_of(frame), frame[22]), (n, 9));
        assert_eq!([&frame[26..29], &frame[30..33]], [[192, 168, 7]; 2]);
    }
    // Select a time window, and add a link's delay.
    let options = "--from 2h --until 3h --delay 20ms";
    longwire(format!("replay {trace} --to pcap:{out} {options}")).well();
    let base = EPOCH + 2 * HOUR + 20_000_000;
    assert_eq!(stamps(&out), [base + 28, base + 35]);
}

#[test]
fn clients_and_servers_go_to_two_files() {
    let dir = Folder::new();
    let trace = trace(&dir);
    let outs = [dir.file("up.pcap"), dir.file("down.pcap")];
    let to = format!("--to pcap:{} --to pcap:{}", outs[0], outs[1]);
    for rule in ["client=10.9.0.1", "port", "syn"] {
        let options = format!("--split {rule} --down-delay 1ms --json");
        let json = json_of(format!("replay {trace} {to} {options}"));
        for (side, name) in [(0, "link.up"), (1, "link.down")] {
            let (link, out) = (&json["links"][side as usize], &outs[side as usize]);
            assert_eq!(
                (&link["name"], &link["packets_out"]),
                (&name.into(), &5.into()),
                "{rule}"
            );
            let numbers: Vec<u32> = records(out).iter().map(|frame| number_of(frame)).collect();
            assert_eq!(numbers, [0, 2, 4, 6, 8].map(|n| n + side), "{rule}");
            // Both outputs share one time base.
            let first = EPOCH + u64::from(side) * (7 + 1_000_000);
            assert_eq!(frames(out)[0].0, first, "{rule}");
        }
    }
}

/// The frame is longer than any live port accepts.
#[test]
fn a_long_frame_is_carried() {
    let dir = Folder::new();
    let (long, out) = (dir.file("long.pcap"), dir.file("out.pcap"));
    let mut frame = numbered(true, 1);
    frame.resize(200_000, 7);
    write(&long, pcap_of(1, [(0, frame.clone())]));
    longwire(format!("replay {long} --to pcap:{out}")).well();
    assert_eq!(records(&out), [frame]);
}

#[test]
fn options_unsupported_by_files_are_refused() {
    let dir = Folder::new();
    let trace = trace(&dir);
    let to = format!("--to pcap:{}", dir.file("out.pcap"));
    assert_refused(&format!(
        "
        replay {trace} {to} --topspeed | 2 | --rate
        replay {trace} {to} --loop 0 | 2 | --count
        replay {trace} {to} --receive lo | 2 | needs a port
        replay {trace} {to} --view | 2 | need a live port
        replay {trace} {to} --launch device | 2 | needs a live port
        replay {trace} {to} --start-at +1s | 2 | needs a date
        replay {trace} {to} --capture c.pcap | 2 | is already a capture
        replay {trace} {to} {to} --split port | 2 | twice
        replay {trace} --to pcap:{trace} | 2 | is also the input
        "
    ));
    assert_eq!(records(&trace).len(), 10);
}
