//! `--shards`: files, logs and reports are independent of it.

use std::fs;

use crate::common::{longwire, write};
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_testbed::support::frames::udp4;
use longwire_testbed::support::{Draws, Folder};

/// Access links that share a core link; a scenario changes delays before the core.
const NETWORK: &str = r#"
[ports]
west = "null"
east = "null"

[[link]]
name = "access{n}"
count = 8
rate = "4mbit"
queue = "codel"
delay = "2ms"
loss = "1%"

[[link]]
name = "core"
rate = "20mbit"
queue = "fq-codel"
delay = "10ms"
duplicate = "random:rate=1%"

[[at]]
time = "300ms"
set = { "access1.up" = { delay = "1ms" }, "core.up" = { rate = "10mbit" } }

[[at]]
time = "600ms"
set = { "access*.up" = { delay = "200us" } }
"#;

fn capture(path: &str) {
    let mut draws = Draws(7);
    let mut writer = CaptureWriter::create(path).expect("a file");
    let mut at = 1_000_000_000;
    for _ in 0..6_000 {
        at += [0, 100_000, 250_000][draws.below(3) as usize];
        let from = 1 + draws.below(8) as u8;
        let payload = vec![from; draws.below(1_200) as usize];
        let bytes = udp4([10, 0, 0, from], [10, 1, 0, 1], (1, 2), &payload);
        let wire_len = bytes.len() as u32;
        writer
            .write(Nanos::from_nanos(at), &bytes, wire_len)
            .expect("room");
    }
    writer.finish().expect("room");
}

#[test]
fn simulations_write_the_same_with_any_number_of_shards() {
    let dir = Folder::new();
    let (network, input) = (dir.file("network.toml"), dir.file("in.pcap"));
    let path = |n: u8| {
        format!(
            "[[path]]\nname = \"way{n}\"\nvia = [\"access{n}\", \"core\"]\nmatch = \"src=10.0.0.{n}\"\n"
        )
    };
    let paths: String = (1..=8).map(path).collect();
    write(&network, format!("{NETWORK}{paths}").as_bytes());
    capture(&input);
    let simulate = |shards: &str| {
        let (out, log) = (dir.file("out.pcapng"), dir.file("log.csv"));
        let ran = longwire(&[
            "simulate",
            &network,
            "--in",
            &format!("west={input}"),
            "--out",
            &out,
            "--log",
            &log,
            "--shards",
            shards,
            "--json",
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        report["duration_s"].take();
        // The command contains the number of shards.
        report["command"].take();
        let read = |path: &str| fs::read(path).expect("it was written");
        (report, read(&out), read(&log))
    };
    let one = simulate("1");
    assert!(one.1.len() > 500_000 && one.2.len() > 500_000);
    for shards in ["2", "3", "4", "16", "auto"] {
        let several = simulate(shards);
        assert!(several.1 == one.1, "{shards} shards: another capture");
        assert!(several.2 == one.2, "{shards} shards: another log");
        assert_eq!(several.0, one.0, "{shards} shards");
    }
}

#[test]
fn numbers_of_shards_are_refused_where_they_mean_nothing() {
    let ran = longwire(&["node", "--shards", "2"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("--shards: each attachment of a node"),
        "{ran:?}"
    );
    let ran = longwire(&["run", "network.toml", "--shards", "0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr
            .contains("'0' is not a number of shards; write 1 to 64, or auto"),
        "{ran:?}"
    );
}
