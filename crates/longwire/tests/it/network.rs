//! `longwire run FILE.toml` with real stations: four namespaces on a bridge of four
//! ports; links between some of them change during the run.
//!
//! Without permission to create namespaces, the test passes without running, except in
//! CI.

use std::time::{Duration, Instant};

use crate::common::site::{Site, address, assert_nothing_lost, link};
use crate::common::{longwire, write};
use longwire_testbed::support::Folder;

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"
d = "packet:p3"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"
delay = "20ms"

[[link]]
name = "ac"
match = "src=10.9.0.1,dst=10.9.0.3"
delay = "5ms"
down = { delay = "15ms" }

[[at]]
time = "12s"
set = { "ab" = { delay = "40ms" } }
down = ["ac.down"]
"#;

#[test]
fn stations_meet_over_links_that_change() {
    let Some(site) = Site::new(4) else { return };
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let began = Instant::now();
    let running = site.start(&file);
    // Frames that arrived before the start are late; ARP crosses the bridge without a
    // link.
    let answered = (0..5).find_map(|_| site.round_trip(0, 1));
    assert!(answered.is_some(), "no answer");
    let check = |from: usize, to: usize, delays: f64| {
        site.assert_round_trip(from, &address(to).to_string(), delays);
    };
    check(0, 1, 40.0);
    check(0, 2, 20.0);
    check(0, 3, 0.0);
    check(2, 1, 0.0);
    while began.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(50));
    }
    check(0, 1, 80.0);
    assert_eq!(site.round_trip(0, 2), None, "one direction is down");
    let report = running.stop();
    assert!(link(&report, "ac.down")["drops"]["outage"].as_u64() >= Some(4));
    let drops = link(&report, "ab.up")["drops"].as_object();
    assert!(drops.is_some_and(|drops| drops.values().all(|count| count == 0)));
    let learnt = report["switch"]["learnt"].as_u64();
    assert!(learnt >= Some(4), "{learnt:?} stations");
    assert_nothing_lost(&report);
}

#[test]
fn a_file_that_is_refused_starts_nothing() {
    let dir = Folder::new();
    let file = dir.file("wrong.toml");
    write(
        &file,
        b"[ports]\na = \"packet:nothing\"\n[[link]]\nname = \"x\"\nrate = \"fast\"\n",
    );
    let ended = longwire(&["run", &file]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("wrong.toml:5"), "{ended:?}");
    // A single port is no link.
    let ended = longwire(&["run", "null"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("two ends"), "{ended:?}");
}
