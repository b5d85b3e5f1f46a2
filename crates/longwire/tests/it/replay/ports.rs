//! Choice of the output port.

use crate::common::process::records;
use crate::common::{frames, longwire, write};
use crate::replay::frames::{TimedFrames, number_of, numbered};
use crate::replay::wire::pcap_of;
use longwire_testbed::support::Folder;

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
fn ports_and_traces_that_do_not_go_together_are_refused() {
    let dir = Folder::new();
    let trace = conversation(&dir);
    let to = format!("pcap:out={}", dir.file("out.pcap"));
    let refused: [(&[&str], &str); 4] = [
        (&["--split", "port"], "--split needs two --to"),
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
