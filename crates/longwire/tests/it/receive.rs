//! `receive` end to end: a capture compared with its trace, and refused options.

use longwire_testbed::support::Folder;
use longwire_testbed::support::capture;

use crate::common::program::{json_of, longwire};
use crate::common::{EPOCH, assert_refused, frames, number, pcap, write};

const US: u64 = 1_000;

/// Returns frames 70 us apart, with nearly unique lengths.
fn trace() -> Vec<(u64, usize)> {
    (0..1_000u64)
        .map(|number| (EPOCH + number * 70 * US, 100 + number as usize % 900))
        .collect()
}

/// Returns a capture of the trace's frames for which `kept` returns a time, at these times.
fn received(kept: impl Fn(u64) -> Option<u64>) -> Vec<u8> {
    // A frame's contents depend on its number in the whole trace.
    let records = (0..).zip(capture::records(&pcap(&trace())));
    let kept = records.filter_map(|(number, (_, bytes))| Some((kept(number)?, bytes)));
    capture::pcap(1, kept)
}

/// Writes the trace and a capture; returns the arguments of `receive`, and the path of the trace.
fn files(dir: &Folder, received: &[u8]) -> (String, String) {
    let (sent, came) = (dir.file("sent.pcap"), dir.file("came.pcap"));
    write(&sent, pcap(&trace()));
    write(&came, received);
    (format!("receive pcap:{came}"), sent)
}

#[test]
fn a_capture_is_judged_against_its_trace() {
    let dir = Folder::new();
    // The capture begins an hour later, and its clock is 100 ppm fast; every hundredth frame is
    // lost, and every second one is a microsecond late.
    let later = EPOCH + 3_600_000_000 * US;
    let came = received(|number| {
        let due = number * 70 * US;
        (number % 100 != 50).then_some(later + due + due / 10_000 + number % 2 * US)
    });
    let (receive, sent) = files(&dir, &came);
    let report = json_of(format!("{receive} --against {sent} --json"));
    assert_eq!(report["packets"], 990);
    let trace = &report["trace"];
    for (name, expected) in [("matched", 990), ("lost", 10), ("reordered", 0)] {
        assert_eq!(trace[name], expected, "{name}: {trace}");
    }
    let timing = &trace["timing"];
    // Pairs next to a lost frame do not count.
    assert_eq!(timing["gap_error_us"]["count"], 979);
    let worst = number(&timing["gap_error_us"]["max"]);
    assert!((worst - 1.007).abs() < 0.002, "{worst}");
    let drift = number(&timing["drift"]["ppm"]);
    assert!((drift - 100.0).abs() < 1.0, "{drift}");

    let require = |what: &str| longwire(format!("{receive} --against {sent} --require {what}"));
    let met = require("lost<=10,gap_error.p99<2us,drift<150,foreign=0");
    met.well().prints("990 of 1,000");
    require("lost=0,drift<1")
        .exits(3)
        .says("lost=0: was 10")
        .says("drift<1: was");
}

#[test]
fn a_trace_at_twice_its_speed_is_judged_so() {
    let dir = Folder::new();
    let came = received(|number| Some(EPOCH + number * 35 * US));
    let (receive, sent) = files(&dir, &came);
    let required = "--require gap_error.max<=0us,drift<=0";
    longwire(format!("{receive} --against {sent} {required}")).exits(3);
    longwire(format!("{receive} --against {sent} {required} --speed 2x")).well();
    let required = "--expect-gap 35us --require gap_error.max<=0us,gap.p50=35us";
    longwire(format!("{receive} {required}")).well();
}

#[test]
fn arrivals_are_captured_unchanged() {
    let dir = Folder::new();
    let (receive, _) = files(&dir, &pcap(&trace()));
    let copy = dir.file("copy.pcap");
    longwire(format!("{receive} --capture {copy} --count 500")).well();
    assert_eq!(frames(&copy), trace()[..500]);
}

#[test]
fn invalid_options_are_refused() {
    let dir = Folder::new();
    let (receive, sent) = files(&dir, &pcap(&trace()));
    assert_refused(&format!(
        "
        {receive} --idle 2s | 2 | --idle needs a live port
        {receive} --ignore colour --against {sent} | 2 | 'colour'
        {receive} --ignore mac | 2 | --against
        {receive} --require loss=0 | 2 | known: packets
        {receive} --against {sent}.none | 1 | sent.pcap.none
        {receive} --report {sent}.html | 2 | JSON only
        "
    ));
}

#[test]
fn a_capture_cut_short_is_judged_as_far_as_it_goes() {
    let dir = Folder::new();
    let mut bytes = pcap(&trace());
    bytes.truncate(bytes.len() - 7);
    let (receive, _) = files(&dir, &bytes);
    let ran = longwire(format!("{receive} --json"))
        .exits(1)
        .says("came.pcap");
    assert_eq!(ran.json()["packets"], 999);
}
