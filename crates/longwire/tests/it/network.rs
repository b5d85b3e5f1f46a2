//! `longwire run FILE.toml` with real stations: four namespaces on a bridge of four
//! ports; links between some of them change during the run.
//!
//! Without permission to create namespaces, the test passes without running, except in
//! CI.

use std::time::{Duration, Instant};

use crate::common::recording::delivered;
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
off = ["ac.down"]
"#;

/// Time of the scenario's change.
const CHANGE: Duration = Duration::from_secs(12);

#[test]
fn stations_meet_over_links_that_change() {
    let Some(site) = Site::new(4) else { return };
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let log = dir.file("log.csv");
    let running = site.start_with(&[&file, "--log", &log]);
    let began = Instant::now();
    // Frames that arrived before the start are late; ARP crosses the bridge without a
    // link.
    site.wait_for_answer(0, 1);
    for (from, to) in [(0, 1), (0, 2), (0, 3), (2, 1)] {
        site.round_trip(from, to);
    }
    while began.elapsed() < CHANGE {
        std::thread::sleep(Duration::from_millis(50));
    }
    site.assert_not_early(0, &address(1).to_string(), 80.0);
    assert_eq!(site.round_trip(0, 2), None, "one direction is down");
    let report = running.stop();
    assert!(link(&report, "ac.down")["drops"]["outage"].as_u64() >= Some(4));
    let drops = link(&report, "ab.up")["drops"].as_object();
    assert!(drops.is_some_and(|drops| drops.values().all(|count| count == 0)));
    let learnt = report["switch"]["learnt"].as_u64();
    assert!(learnt >= Some(4), "{learnt:?} stations");
    assert_nothing_lost(&report);
    let delays_ms = [
        ("ab.up", 20, 40),
        ("ab.down", 20, 40),
        ("ac.up", 5, 5),
        ("ac.down", 15, 0),
    ];
    for (link, before, after) in delays_ms {
        let frames = delivered(&log, link);
        assert!(frames.len() >= 4, "{link}: {frames:?}");
        for frame in frames {
            let is_before = frame.arrival < CHANGE.as_nanos() as i64;
            let delay_ms = if is_before { before } else { after };
            assert_eq!(frame.time, delay_ms * 1_000_000, "{link}: {frame:?}");
        }
    }
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
    assert!(ended.stderr.contains("missing port B"), "{ended:?}");
}
