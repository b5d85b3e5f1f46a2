//! `longwire check --shards`: the partition of a network into shards, as text and as
//! JSON.

use crate::common::{longwire, write};
use longwire_testbed::support::Folder;
use serde_json::{Value, json};

/// Two access links that feed a core link of 2 ms; the fast link has no delay.
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

/// Returns the lines from the one about shards on.
fn shards_of(stdout: &str) -> Vec<&str> {
    let lines = stdout.lines();
    lines
        .skip_while(|line| !line.starts_with("shards "))
        .collect()
}

#[test]
fn text_and_json_show_the_same_cut() {
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let ran = longwire(&["check", &file, "--shards", "4"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = [
        "shards     4 (4 requested): paths change their shard at 4 hops, with at least 2ms of \
         delay, and the busiest shard has 23.0 % more than an even share",
        "  shard 0  30.8 % of the load, 2 links: access1.up, access2.up",
        "  shard 1  30.8 % of the load, 2 links: access1.down, access2.down",
        "  shard 2  19.2 % of the load, 1 link: core.up",
        "  shard 3  19.2 % of the load, 1 link: core.down",
    ];
    assert_eq!(shards_of(&ran.stdout)[..5], expected, "{ran:?}");

    let ran = longwire(&["check", &file, "--shards", "4", "--json"]);
    let checked: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let shards = &checked["shards"];
    assert_eq!(shards["asked"], "4");
    assert_eq!(shards["lookahead_ns"], 2_000_000);
    let links = json!(["access1.up", "access2.up"]);
    assert_eq!(shards["shards"][0]["links"], links);
    assert_eq!(shards["shards"][0]["load"], 32_000_000);
    let cuts = shards["cuts"].as_array().expect("cuts");
    let cut = json!({"link": "core.down", "to": "access1.down", "lookahead_ns": 2_000_000});
    assert!(cuts.contains(&cut), "{cuts:?}");
}

#[test]
fn an_indivisible_network_reports_the_reason() {
    let dir = Folder::new();
    let file = dir.file("network.toml");
    let short = NETWORK.replace("20ms", "20us").replace("5ms", "5us");
    write(&file, short.replace("2ms", "2us").as_bytes());
    let ran = longwire(&["check", &file, "--shards", "4"]);
    let why = "shards     2 (4 requested): no path changes its shard, and all shards have the same \
               load; the network has no more than 2 separable parts";
    assert_eq!(shards_of(&ran.stdout)[0], why, "{ran:?}");
    let ran = longwire(&["check", &file, "--shards", "auto"]);
    let why = "shards     1 (auto requested): fewer than 512 links fit into the cache of one core";
    assert_eq!(shards_of(&ran.stdout)[0], why, "{ran:?}");
    // Without the option, shards are not mentioned.
    let ran = longwire(&["check", &file]);
    assert!(shards_of(&ran.stdout).is_empty(), "{ran:?}");
    let ran = longwire(&["check", &file, "--shards", "65"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let why = "'65' is not a number of shards; write 1 to 64, or auto";
    assert!(ran.stderr.contains(why), "{ran:?}");
}
