//! `replay --receive`: comparison of arrivals with the trace, effects of the emulated link, and send
//! timestamps.

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{longwire, run_in};
use crate::common::site::wired;
use crate::common::{EPOCH, assert_refused, count, number, pcap, write};

/// Replays a trace of `frames` frames, 200 us apart, from `near` to `far` with these options;
/// returns the report of the output, and of its receiver.
fn replay(namespace: &NetNamespace, frames: u64, options: &str) -> Value {
    let dir = Folder::new();
    let trace = trace(&dir, frames);
    let ports = "--to packet:near --receive packet:far --json";
    let sending = "--no-realtime --tolerance 10s";
    let line = format!("longwire replay {trace} {ports} {sending} {options}");
    let report = run_in(namespace, line).well().json();
    let mut link = report["links"][0].clone();
    link["received"] = report["receivers"]["out"].clone();
    link
}

/// Writes a trace of frames, 200 us apart.
fn trace(dir: &Folder, frames: u64) -> String {
    let file = dir.file("sent.pcap");
    let frames = (0..frames).map(|n| (EPOCH + n * 200_000, 60 + (n as usize * 37) % 1_400));
    write(&file, pcap(&frames.collect::<Vec<_>>()));
    file
}

#[track_caller]
fn assert_counts(found: &Value, expected: &[(&str, u64)]) {
    for (name, expected) in expected {
        assert_eq!(found[name], *expected, "{name}: {found}");
    }
}

#[test]
fn arrivals_are_compared_and_departures_are_stamped() {
    let Some(namespace) = wired(&[("near", "far")]) else {
        return;
    };
    let require = "received.lost=0,received.matched=2000,received.delay.max<10s,sent.p50<10s";
    let link = replay(&namespace, 2_000, &format!("--require {require}"));
    let (received, stamps) = (&link["received"], &link["send_stamps"]);
    // The network stack of `near` may send a frame before its device is configured.
    let stray = count(&received["trace"]["foreign"]);
    assert!(stray < 10, "{received}");
    assert_eq!(received["packets"], 2_000 + stray, "{received}");
    let none = ["lost", "behind_last", "duplicates", "reordered", "changed"];
    assert_counts(&received["trace"], &[("matched", 2_000)]);
    assert_counts(&received["trace"], &none.map(|name| (name, 0)));
    let delay = &received["delay"]["one_way_us"];
    assert_eq!(delay["count"], 2_000);
    assert!(number(&delay["min"]) > 0.0, "{delay}");
    // One frame in a hundred has a send timestamp: at most 2 us (the accuracy of the clock
    // comparison) before its due time, and at most 10 us after the largest total delay.
    assert_eq!(stamps["by"], "kernel", "{stamps}");
    assert_counts(stamps, &[("every", 100), ("count", 20)]);
    assert!(number(&stamps["earliest_us"]) < 2.0, "{stamps}");
    let late = &stamps["lateness_us"];
    assert!(number(&late["p50"]) > 0.0, "{stamps}");
    let way = number(&link["late_max_ns"]) / 1e3 + number(&delay["max"]);
    assert!(number(&late["max"]) <= way + 10.0, "{link}");
}

#[test]
fn effects_of_the_emulated_link_are_not_the_networks() {
    let Some(namespace) = wired(&[("near", "far")]) else {
        return;
    };
    let options = "--filter 'greater 100' --loop 3 --count 2500 --dst-mac 02:00:00:00:00:01 \
                   --loss nth:10 --delay 5ms --corrupt 5% --duplicate 5%";
    let link = replay(&namespace, 1_000, options);
    let duplicated = count(&link["duplicated"]);
    assert_counts(
        &link,
        &[("packets_in", 2_500), ("packets_out", 2_250 + duplicated)],
    );
    assert_eq!(link["drops"]["loss"], 250, "{link}");
    assert!(count(&link["corrupted"]) > 50 && duplicated > 50);
    let none = ["lost", "behind_last", "duplicates", "changed"];
    assert_counts(
        &link["received"]["trace"],
        &[("matched", 2_250 + duplicated)],
    );
    assert_counts(&link["received"]["trace"], &none.map(|name| (name, 0)));
}

#[test]
fn impossible_options_are_refused_before_anything_is_sent() {
    let dir = Folder::new();
    let replay = format!("replay {} --to null", trace(&dir, 3));
    assert_refused(&format!(
        "
        {replay} --receive-wait 1s | 2 | --receive
        {replay} --receive a --receive b | 2 | --to 1 times
        {replay} --receive packet:no-such0 | 1 | no-such0
        {replay} --receive packet:lo --receive-netns no-such | 1 | no-such
        {replay} --launch device | 2 | tc-etf
        {replay} --launch queue --topspeed | 2 | --topspeed
        {replay} --require received.nothing=1 | 2 | known: packets
        {replay} --require sent.p98<1us | 2 | sent.p99
        {replay} --require received.lost=0 | 2 | no receiver
        {replay} --require up.drops=0 | 2 | no link named 'up'
        "
    ));
    // This port has no send timestamps, but only the end of the run reveals that.
    longwire(format!("{replay} --require sent.p99<1s")).exits(3);
}
