//! `--shards`: the partition shown by `check`. Files, logs and reports of simulations do not depend
//! on it; longwire-runtime tests the same of verdicts.

use std::fs;

use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_testbed::support::frames::udp4;
use longwire_testbed::support::{Draws, Folder};
use serde_json::json;

use crate::common::program::longwire;
use crate::common::{assert_refused, list, write};

/// Two access links in front of a core link of 2 ms; the fast link has no delay.
const NETWORK: &str = r#"
[ports]
a = "null"
b = "null"
[[link]]
name = "access{n}"
count = 2
rate = "16mbit"
delay = "20ms"
down = { rate = "16mbit", delay = "5ms" }
[[link]]
name = "core"
rate = "20mbit"
delay = "2ms"
[[path]]
name = "way1"
via = ["access1", "core"]
match = "src=10.0.0.1"
[[path]]
name = "way2"
via = ["access2", "core"]
match = "src=10.0.0.2"
"#;

/// Checks a network; returns the output from the line about shards onwards.
fn shards_of(file: &str, options: &str) -> Vec<String> {
    let ran = longwire(format!("check {file} {options}")).well();
    let lines = ran.stdout.lines().map(str::to_owned);
    lines
        .skip_while(|line| !line.starts_with("shards "))
        .collect()
}

#[test]
fn text_and_json_show_the_same_cut() {
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK);
    let expected = [
        "shards     4 (4 requested): paths change shards at 4 hops, with a delay of at least \
         2ms, and the busiest shard has 23.0 % more load than an even share",
        "  shard 0  30.8 % of the load, 2 links: access1.up, access2.up",
        "  shard 1  30.8 % of the load, 2 links: access1.down, access2.down",
        "  shard 2  19.2 % of the load, 1 link: core.up",
        "  shard 3  19.2 % of the load, 1 link: core.down",
    ];
    assert_eq!(shards_of(&file, "--shards 4")[..5], expected);

    let checked = longwire(format!("check {file} --shards 4 --json")).json();
    let shards = &checked["shards"];
    assert_eq!(shards["asked"], "4");
    assert_eq!(shards["lookahead_ns"], 2_000_000);
    assert_eq!(
        shards["shards"][0]["links"],
        json!(["access1.up", "access2.up"])
    );
    assert_eq!(shards["shards"][0]["load"], 32_000_000);
    let cut = json!({"link": "core.down", "to": "access1.down", "lookahead_ns": 2_000_000});
    assert!(list(&shards["cuts"]).contains(&cut), "{shards}");
}

#[test]
fn an_indivisible_network_reports_the_reason() {
    let dir = Folder::new();
    let file = dir.file("network.toml");
    let short = NETWORK.replace("20ms", "20us").replace("5ms", "5us");
    write(&file, short.replace("2ms", "2us"));
    let why = "shards     2 (4 requested): no path changes shards, and all shards have the same \
               load; the network has no more than 2 separable parts";
    assert_eq!(shards_of(&file, "--shards 4")[0], why);
    let why = "shards     1 (auto requested): fewer than 512 links fit into the cache of one core";
    assert_eq!(shards_of(&file, "--shards auto")[0], why);
    let without = shards_of(&file, "");
    assert!(without.is_empty(), "{without:?}");
    assert_refused(&format!(
        "
        check {file} --shards 65 | 2 | '65' is not a number of shards; write 1 to 64, or auto
        run network.toml --shards 0 | 2 | '0' is not a number of shards; write 1 to 64, or auto
        node --shards 2 | 2 | --shards: each attachment of a node
        "
    ));
}

/// Access links that share a core link; a scenario changes the delays of access links.
const SIMULATED: &str = r#"
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

/// Writes a capture with datagrams from the addresses of all access links.
fn capture(path: &str) {
    let mut draws = Draws(7);
    let mut writer = CaptureWriter::create(path).expect("a file");
    let mut at = 1_000_000_000;
    for _ in 0..6_000 {
        at += draws.pick(&[0, 100_000, 250_000]);
        let from = 1 + draws.below(8) as u8;
        let payload = vec![from; draws.below(1_200) as usize];
        let bytes = udp4([10, 0, 0, from], [10, 1, 0, 1], (1, 2), &payload);
        let written = writer.write(Nanos::from_nanos(at), &bytes, bytes.len() as u32);
        written.expect("room");
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
    write(&network, format!("{SIMULATED}{paths}"));
    capture(&input);
    let simulate = |shards: &str| {
        let (out, log) = (dir.file("out.pcapng"), dir.file("log.csv"));
        let files = format!("--in west={input} --out {out} --log {log}");
        let ran = longwire(format!(
            "simulate {network} {files} --shards {shards} --json"
        ))
        .well();
        let mut report = ran.json();
        report["duration_s"].take();
        // Ignore the command line, which contains the number of shards.
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
