//! `replay --receive` through the program: effects of the network under test and of the
//! emulated link, and send timestamps.
//!
//! Tests between devices need namespaces. Without permission to create them, they pass
//! without running, except in CI.

use crate::common::wire::{inside, wired};
use crate::common::{EPOCH, Frame, Ran, longwire, pcap, write};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, words};
use serde_json::Value;

/// Replays from `near` to `far` with these options.
fn replay(namespace: &NetNamespace, trace: &str, options: &[&str]) -> Ran {
    let ports = ["--to", "packet:near", "--receive", "packet:far", "--json"];
    let sending = ["--no-realtime", "--tolerance", "10s"];
    let command = [&["replay", trace], &ports[..], &sending, options].concat();
    inside(namespace, &command)
}

/// Returns a trace of `frames` frames, 200 us apart.
fn trace(dir: &Folder, frames: u64) -> String {
    let file = dir.file("sent.pcap");
    let frames = (0..frames).map(|n| (EPOCH + n * 200_000, 60 + (n as usize * 37) % 1_400));
    write(&file, &pcap(&frames.collect::<Vec<Frame>>()));
    file
}

/// Returns the report of the only output, and of its receiver.
fn link(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    let mut link = report["links"][0].clone();
    link["received"] = report["receivers"]["out"].clone();
    link
}

#[test]
fn arrivals_are_compared_and_departures_are_stamped() {
    let Some(namespace) = wired(&[("near", "far")]) else {
        return;
    };
    let dir = Folder::new();
    let require = "received.lost=0,received.matched=2000,received.delay.max<10s,sent.p50<10s";
    let ran = replay(&namespace, &trace(&dir, 2_000), &["--require", require]);
    let link = link(&ran);
    let (received, stamps) = (&link["received"], &link["send_stamps"]);
    // The stack of `near` may send a frame before its device is configured.
    let stray = received["trace"]["foreign"].as_u64().unwrap_or(u64::MAX);
    assert!(stray < 10, "{received}");
    assert_eq!(received["packets"], 2_000 + stray, "{received}");
    for (count, expected) in [("matched", 2_000), ("lost", 0), ("behind_last", 0)] {
        assert_eq!(received["trace"][count], expected, "{count}: {received}");
    }
    for count in ["duplicates", "reordered", "changed"] {
        assert_eq!(received["trace"][count], 0, "{count}: {received}");
    }
    let delay = &received["delay"]["one_way_us"];
    assert_eq!(delay["count"], 2_000);
    assert!(delay["min"].as_f64() > Some(0.0), "{delay}");
    // One in a hundred; none earlier than its time minus the accuracy of the clock
    // comparison, and none as late as the delay of the whole path.
    assert_eq!(
        (&stamps["by"], &stamps["every"]),
        (&"kernel".into(), &100.into())
    );
    assert_eq!(stamps["count"], 20, "{stamps}");
    assert!(stamps["earliest_us"].as_f64() < Some(2.0), "{stamps}");
    let late = &stamps["lateness_us"];
    assert!(late["p50"].as_f64() > Some(0.0), "{stamps}");
    let handover = link["late_max_ns"].as_f64().unwrap_or(0.0) / 1e3;
    let way = delay["max"].as_f64().unwrap_or(0.0);
    assert!(
        late["max"].as_f64() <= Some(handover + way + 10.0),
        "{link}"
    );
}

#[test]
fn effects_of_the_emulated_link_are_not_the_networks() {
    let Some(namespace) = wired(&[("near", "far")]) else {
        return;
    };
    let dir = Folder::new();
    let filter = ["--filter", "greater 100"];
    let others = words(
        "--loop 3 --count 2500 --dst-mac 02:00:00:00:00:01 --loss nth:10 --delay 5ms \
         --corrupt 5% --duplicate 5%",
    );
    let options = [&filter[..], &others].concat();
    let ran = replay(&namespace, &trace(&dir, 1_000), &options);
    let link = link(&ran);
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let (sent, dropped) = (number(&link["packets_out"]), number(&link["drops"]["loss"]));
    assert_eq!(number(&link["packets_in"]), 2_500);
    assert_eq!(dropped, 250);
    assert_eq!(sent, 2_250 + number(&link["duplicated"]));
    assert!(number(&link["corrupted"]) > 50 && number(&link["duplicated"]) > 50);
    let found = &link["received"]["trace"];
    assert_eq!(
        (number(&found["matched"]), number(&found["lost"])),
        (sent, 0)
    );
    for count in ["behind_last", "duplicates", "changed"] {
        assert_eq!(found[count], 0, "{count}: {found}");
    }
}

#[test]
fn a_path_that_is_dead_has_lost_everything() {
    let Some(namespace) = wired(&[("near", "in"), ("out", "far")]) else {
        return;
    };
    let dir = Folder::new();
    let ran = replay(&namespace, &trace(&dir, 100), &["--receive-wait", "50ms"]);
    let found = link(&ran)["received"]["trace"].clone();
    assert_eq!(
        (&found["matched"], &found["behind_last"]),
        (&0.into(), &100.into())
    );
}

#[test]
fn impossible_options_are_refused_before_anything_is_sent() {
    let dir = Folder::new();
    let (trace, to) = (trace(&dir, 3), "null");
    for (options, code, says) in [
        (&["--receive-wait", "1s"][..], 2, "--receive"),
        (&["--receive", "a", "--receive", "b"], 2, "--to 1 times"),
        (&["--receive", "packet:no-such0"], 1, "no-such0"),
        (
            &["--receive", "packet:lo", "--receive-netns", "no-such"],
            1,
            "no-such",
        ),
        (&["--launch", "device"], 2, "tc-etf"),
        (&["--launch", "queue", "--topspeed"], 2, "--topspeed"),
        (&["--require", "received.nothing=1"], 2, "known are packets"),
        (&["--require", "sent.p98<1us"], 2, "sent.p99"),
        (&["--require", "received.lost=0"], 2, "no receiver"),
        (&["--require", "up.drops=0"], 2, "no link named 'up'"),
    ] {
        let ran = longwire(&[&["replay", &trace, "--to", to], options].concat());
        assert_eq!(ran.code, code, "{options:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
    // This port has no send timestamps, which is known after the run.
    let ran = longwire(&["replay", &trace, "--to", to, "--require", "sent.p99<1s"]);
    assert_eq!(ran.code, 3, "{ran:?}");
}
