//! `receive` through the program: a capture compared with its trace, and refused
//! options.

use crate::common::{EPOCH, longwire, pcap, write};
use longwire_testbed::support::Folder;

const US: u64 = 1_000;

/// Returns frames 70 us apart, of nearly unique lengths.
fn trace() -> Vec<(u64, usize)> {
    (0..1_000u64)
        .map(|number| (EPOCH + number * 70 * US, 100 + number as usize % 900))
        .collect()
}

/// Returns a capture of some of the trace's frames, at other times.
fn capture(kept: impl Fn(u64) -> Option<u64>) -> Vec<u8> {
    // Frames are numbered by their index in the file, so records are cut out of the
    // whole trace's bytes.
    let all = pcap(&trace());
    let mut bytes = all[..24].to_vec();
    let mut at = 24;
    for (number, (_, len)) in trace().into_iter().enumerate() {
        let record = &all[at..at + 16 + len];
        at += 16 + len;
        if let Some(stamp) = kept(number as u64) {
            bytes.extend(((stamp / 1_000_000_000) as u32).to_le_bytes());
            bytes.extend(((stamp % 1_000_000_000) as u32).to_le_bytes());
            bytes.extend(&record[8..]);
        }
    }
    bytes
}

#[test]
fn a_capture_is_judged_against_its_trace() {
    let dir = Folder::new();
    let (sent, came) = (dir.file("sent.pcap"), dir.file("came.pcap"));
    write(&sent, &pcap(&trace()));
    // An hour later, 100 ppm slower, every hundredth frame lost, and every second one a
    // microsecond later.
    let later = EPOCH + 3_600_000_000 * US;
    write(
        &came,
        &capture(|number| {
            let due = number * 70 * US;
            (number % 100 != 50).then_some(later + due + due / 10_000 + number % 2 * US)
        }),
    );
    let port = format!("pcap:{came}");
    let ran = longwire(&["receive", &port, "--against", &sent, "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    let trace = &report["trace"];
    assert_eq!(report["packets"], 990);
    assert_eq!(
        (&trace["matched"], &trace["lost"]),
        (&990.into(), &10.into())
    );
    assert_eq!(trace["reordered"], 0);
    let timing = &trace["timing"];
    // Pairs around a lost frame do not count.
    assert_eq!(timing["gap_error_us"]["count"], 979);
    let worst = timing["gap_error_us"]["max"].as_f64().unwrap_or(0.0);
    assert!((worst - 1.007).abs() < 0.002, "{worst}");
    let drift = timing["drift"]["ppm"].as_f64().unwrap_or(0.0);
    assert!((drift - 100.0).abs() < 1.0, "{drift}");

    let required = "lost<=10,gap_error.p99<2us,drift<150,foreign=0";
    let options = ["--against", &sent, "--require", required];
    let ran = longwire(&[&["receive", &port], &options[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("990 of 1,000"), "{}", ran.stdout);
    let options = ["--against", &sent, "--require", "lost=0,drift<1"];
    let ran = longwire(&[&["receive", &port], &options[..]].concat());
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("lost=0: was 10"), "{}", ran.stderr);
    assert!(ran.stderr.contains("drift<1: was"), "{}", ran.stderr);
}

#[test]
fn a_trace_at_twice_its_speed_is_judged_so() {
    let dir = Folder::new();
    let (sent, came) = (dir.file("sent.pcap"), dir.file("came.pcap"));
    write(&sent, &pcap(&trace()));
    write(&came, &capture(|number| Some(EPOCH + number * 35 * US)));
    let port = format!("pcap:{came}");
    let options = [
        "--against",
        &sent,
        "--require",
        "gap_error.max<=0us,drift<=0",
    ];
    let command = [&["receive", &port], &options[..]].concat();
    assert_eq!(longwire(&command).code, 3);
    assert_eq!(
        longwire(&[&command[..], &["--speed", "2x"]].concat()).code,
        0
    );
    let gap = ["--expect-gap", "35us"];
    let options = ["--require", "gap_error.max<=0us,gap.p50=35us"];
    let ran = longwire(&[&["receive", &port], &gap[..], &options].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn arrivals_are_captured_unchanged() {
    let dir = Folder::new();
    let (sent, copy) = (dir.file("sent.pcap"), dir.file("copy.pcap"));
    write(&sent, &pcap(&trace()));
    let options = ["--capture", &copy, "--count", "500"];
    let ran = longwire(&[&["receive", &format!("pcap:{sent}")], &options[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(crate::common::frames(&copy), trace()[..500]);
}

#[test]
fn invalid_options_are_refused() {
    let dir = Folder::new();
    let sent = dir.file("sent.pcap");
    write(&sent, &pcap(&trace()));
    let port = format!("pcap:{sent}");
    for (options, says) in [
        (&["--idle", "2s"][..], "--idle needs a live port"),
        (&["--ignore", "colour", "--against", &sent], "'colour'"),
        (&["--ignore", "mac"], "--against"),
        (&["--require", "loss=0"], "known are packets"),
    ] {
        let ran = longwire(&[&["receive", &port], options].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
    let ran = longwire(&["receive", &port, "--against", &dir.file("none.pcap")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("none.pcap"), "{}", ran.stderr);
}

#[test]
fn a_capture_cut_short_is_judged_as_far_as_it_goes() {
    let dir = Folder::new();
    let sent = dir.file("sent.pcap");
    let mut bytes = pcap(&trace());
    bytes.truncate(bytes.len() - 7);
    write(&sent, &bytes);
    let ran = longwire(&["receive", &format!("pcap:{sent}"), "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.json()["packets"], 999);
    assert!(ran.stderr.contains("sent.pcap"), "{}", ran.stderr);
}
