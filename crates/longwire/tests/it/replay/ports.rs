//! Choice of the output port.

use crate::common::process::records;
use crate::common::{frames, longwire, write};
use crate::replay::frames::{TimedFrames, number_of, numbered};
use crate::replay::wire::{Wire, pcap_of};
use longwire_testbed::support::{Folder, words};

const MS: u64 = 1_000_000;

/// Writes a trace of repeated queries and responses, with even numbers for queries;
/// returns its path.
fn conversation(dir: &Folder) -> String {
    let frames: TimedFrames = (0..100)
        .map(|n| (u64::from(n) * MS, numbered(n % 2 == 0, n)))
        .collect();
    let file = dir.file("both.pcap");
    write(&file, &pcap_of(1, &frames));
    file
}

#[test]
fn clients_and_servers_go_to_two_ports() {
    let dir = Folder::new();
    let trace = conversation(&dir);
    let outs = [dir.file("up.pcap"), dir.file("down.pcap")];
    let to = outs.each_ref().map(|out| format!("pcap:out={out}"));
    for rule in ["client=10.9.0.1", "port", "syn"] {
        let ran = longwire(&[
            "replay", &trace, "--split", rule, "--to", &to[0], "--to", &to[1], "--json",
        ]);
        assert_eq!(ran.code, 0, "{rule}: {ran:?}");
        let json = ran.json();
        for (side, name) in ["link.up", "link.down"].iter().enumerate() {
            assert_eq!(json["links"][side]["name"], *name, "{rule}");
            assert_eq!(json["links"][side]["packets_out"], 50, "{rule}");
            let numbers: Vec<u32> = records(&outs[side]).iter().map(|f| number_of(f)).collect();
            let expected: Vec<u32> = (0..50).map(|n| 2 * n + side as u32).collect();
            assert_eq!(numbers, expected, "{rule}");
        }
        // Both in one time base: responses are a millisecond after queries. Each file
        // has its own offset between the clocks, accurate to microseconds.
        let [up, down] = outs.each_ref().map(|out| frames(out));
        let mut pairs = up.iter().zip(&down);
        let near = |later: u64| later.abs_diff(MS) < MS / 10;
        assert!(pairs.all(|(up, down)| near(down.0 - up.0)), "{rule}");
    }
}

#[test]
fn two_devices_get_their_sides() {
    let Some(wire) = Wire::new(2, 1_500) else {
        return;
    };
    let dir = Folder::new();
    let trace = conversation(&dir);
    let split = words("--split client=10.9.0.0/31 --to near0 --to near1");
    let ran = wire.run(&[&["replay", &trace, "--json"], &split[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    wire.expect_arrived(0, 50);
    wire.expect_arrived(1, 50);
    // Each trace to a separate port.
    let ran = wire.run(&[
        "replay", &trace, &trace, "--to", "near0", "--to", "near1", "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    wire.expect_arrived(0, 150);
    wire.expect_arrived(1, 150);
    let json = ran.json();
    let name = json["inputs"][0]["name"].as_str().unwrap_or_default();
    assert_eq!(name.matches("both.pcap").count(), 2, "{json}");
}

#[test]
fn ports_and_traces_that_do_not_go_together_are_refused() {
    let dir = Folder::new();
    let trace = conversation(&dir);
    let to = format!("pcap:out={}", dir.file("out.pcap"));
    let refused: [(&[&str], &str); 4] = [
        (&["--split", "port"], "--split sends to two ports"),
        (&["--to", &to], "1 trace for 2 ports"),
        (&["--split", "colour", "--to", &to], "--split"),
        (
            &["--src-mac", "02:00:00:00:00:01,02:00:00:00:00:02"],
            "--split",
        ),
    ];
    for (options, says) in refused {
        let ran = longwire(&[&["replay", &trace, "--to", &to], options].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
}
