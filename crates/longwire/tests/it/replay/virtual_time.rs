//! `replay --to pcap:FILE`: rewrites captures in virtual time.

use longwire_testbed::support::{Folder, rows};

use crate::common::process::records;
use crate::common::{EPOCH, frames, longwire, write};
use crate::replay::frames::{TimedFrames, number_of, numbered};
use crate::replay::wire::pcap_of;

const HOUR: u64 = 3_600_000_000_000;

/// Writes a trace of a query and its response per hour; returns its path.
fn trace(dir: &Folder) -> String {
    let frames: TimedFrames = (0..10)
        .map(|n| {
            (
                u64::from(n / 2) * HOUR + u64::from(n) * 7,
                numbered(n % 2 == 0, n),
            )
        })
        .collect();
    let file = dir.file("hours.pcap");
    write(&file, &pcap_of(1, &frames));
    file
}

#[test]
fn frames_are_rewritten_and_keep_their_stamps() {
    let dir = Folder::new();
    let (trace, out) = (trace(&dir), dir.file("out.pcap"));
    let to = format!("pcap:{out}");
    let map = ["--map", "10.9.0.0/24=192.168.7.0/24", "--ttl", "9"];
    let ran = longwire(&[&["replay", &trace, "--to", &to, "--json"], &map[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let json = ran.json();
    assert_eq!(json["epoch_ns"], EPOCH);
    assert_eq!(json["links"][0]["packets_out"], 10);
    let verdict = json["verdict"]["line"].as_str().unwrap_or_default();
    assert!(verdict.contains("each at its nanosecond"), "{verdict}");
    let stamps = |file: &str| -> Vec<u64> { frames(file).iter().map(|frame| frame.0).collect() };
    assert_eq!(stamps(&out), stamps(&trace));
    for (frame, n) in records(&out).iter().zip(0..) {
        assert_eq!((number_of(frame), frame[22]), (n, 9));
        assert_eq!(
            (&frame[26..29], &frame[30..33]),
            (&[192, 168, 7][..], &[192, 168, 7][..])
        );
    }
    // A time window, and a link's delay.
    let options = ["--from", "2h", "--until", "3h", "--delay", "20ms"];
    let ran = longwire(&[&["replay", &trace, "--to", &to], &options[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let base = EPOCH + 2 * HOUR + 20_000_000;
    assert_eq!(stamps(&out), [base + 28, base + 35]);
}

#[test]
fn both_sides_go_to_two_files() {
    let dir = Folder::new();
    let trace = trace(&dir);
    let outs = [dir.file("up.pcap"), dir.file("down.pcap")];
    let to = outs.each_ref().map(|out| format!("pcap:{out}"));
    let options = ["--down-delay", "1ms", "--split", "port"];
    let ran = longwire(
        &[
            &["replay", &trace, "--to", &to[0], "--to", &to[1]],
            &options[..],
        ]
        .concat(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    for (side, out) in outs.iter().enumerate() {
        let numbers = records(out)
            .iter()
            .map(|frame| number_of(frame))
            .collect::<Vec<_>>();
        let side = side as u32;
        assert_eq!(numbers, [0, 2, 4, 6, 8].map(|n| n + side));
        let first = EPOCH + u64::from(side) * (7 + 1_000_000);
        assert_eq!(frames(out)[0].0, first);
    }
}

/// Longer than any live port accepts.
#[test]
fn a_long_frame_is_carried() {
    let dir = Folder::new();
    let (long, out) = (dir.file("long.pcap"), dir.file("out.pcap"));
    let mut frame = numbered(true, 1);
    frame.resize(200_000, 7);
    write(&long, &pcap_of(1, &[(0, frame.clone())]));
    let ran = longwire(&["replay", &long, "--to", &format!("pcap:{out}")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(records(&out), [frame]);
}

#[test]
fn options_unsupported_by_files_are_refused() {
    let dir = Folder::new();
    let (trace, out) = (trace(&dir), dir.file("out.pcap"));
    let to = format!("pcap:{out}");
    for [options, says] in rows(
        "
        --topspeed | --rate
        --loop 0 | --count
        --receive lo | needs a port
        --view | need a live port
        --launch device | holds frames
        --start-at +1s | needs a date
        --capture c.pcap | is a capture already
        ",
    ) {
        let options: Vec<&str> = options.split(' ').collect();
        let ran = longwire(&[&["replay", &trace, "--to", &to], &options[..]].concat());
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{options:?}: {ran:?}");
    }
    let over_itself = format!("pcap:{trace}");
    let ran = longwire(&["replay", &trace, "--to", &over_itself]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("is also the input"), "{ran:?}");
    assert_eq!(records(&trace).len(), 10);
    let ran = longwire(&[
        "replay", &trace, "--split", "port", "--to", &to, "--to", &to,
    ]);
    assert!(ran.code == 2 && ran.stderr.contains("twice"), "{ran:?}");
}
