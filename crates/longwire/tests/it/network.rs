//! `longwire run` with a pair of ports, and with real stations: namespaces on a bridge, changing
//! links, and ports that go away.
//!
//! Tests that need namespaces are skipped without permission to create them, except in CI.

use std::time::{Duration, Instant};

use longwire_testbed::support::Folder;

use crate::common::program::{change, eventually, json_of, longwire};
use crate::common::recording::delivered;
use crate::common::site::{Site, address, assert_nothing_lost};
use crate::common::{EPOCH, MS, assert_refused, count, list, named, number, pcap, write};

#[test]
fn run_names_its_directions_and_ends_with_its_time() {
    let dir = Folder::new();
    let (input, out) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&input, pcap(&[(EPOCH, 100), (EPOCH + 60_000 * MS, 100)]));
    let options = "--time 300ms --json --ab-delay 1ms --down-delay 2ms";
    let report = json_of(format!("run pcap:in={input} pcap:out={out} {options}"));
    for (at, name, delay, out) in [(0, "link.up", "1ms", 1), (1, "link.down", "2ms", 0)] {
        let link = &report["links"][at as usize];
        assert_eq!(
            (&link["name"], &link["config"]["delay"]),
            (&name.into(), &delay.into())
        );
        assert_eq!(link["packets_out"], out, "{name}");
    }
    // `--require` accepts every kind of artifact that the runtime counts.
    let artifacts = report["ports"][0]["artifacts"]
        .as_object()
        .expect("artifacts");
    assert!(!artifacts.is_empty());
    for kind in artifacts.keys() {
        assert!(longwire_runtime::Artifact::named(kind).is_some(), "{kind}");
    }
    let took = number(&report["duration_s"]);
    assert!((0.3..30.0).contains(&took), "{took}");
}

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

/// Time of the change in the scenario.
const CHANGE: Duration = Duration::from_secs(12);

#[test]
fn stations_meet_over_links_that_change() {
    let Some(site) = Site::new(4) else { return };
    let dir = Folder::new();
    let log = dir.file("log.csv");
    let running = site.start_network(&dir, NETWORK, &format!("--log {log}"));
    let began = Instant::now();
    // Frames that arrive before the start would be late; ARP crosses the bridge without a link.
    site.wait_for_answer(0, 1);
    for (from, to) in [(0, 1), (0, 2), (0, 3), (2, 1)] {
        site.round_trip(from, to);
    }
    std::thread::sleep(CHANGE.saturating_sub(began.elapsed()));
    site.assert_not_early(0, &address(1).to_string(), 80.0);
    assert_eq!(site.round_trip(0, 2), None, "one direction is down");
    let report = running.stop();
    let drops = |link| &named(&report["links"], link)["drops"];
    assert!(count(&drops("ac.down")["outage"]) >= 4);
    assert_eq!(crate::common::sum(drops("ab.up")), 0, "{report}");
    assert!(count(&report["switch"]["learnt"]) >= 4, "{report}");
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
            assert_eq!(frame.delay, delay_ms * 1_000_000, "{link}: {frame:?}");
        }
    }
}

#[test]
fn a_file_that_is_refused_starts_nothing() {
    let dir = Folder::new();
    let file = dir.file("wrong.toml");
    let text = "[ports]\na = \"packet:nothing\"\n[[link]]\nname = \"x\"\nrate = \"fast\"\n";
    write(&file, text);
    longwire(format!("run {file}"))
        .exits(2)
        .says("wrong.toml:5");
    // A link needs two ports.
    assert_refused("run null | 2 | missing port B");
}

/// A network of three ports, one of which is lost during the test.
const THREE: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"

[[link]]
name = "ac"
match = "src=10.9.0.1,dst=10.9.0.3"
delay = "5ms"
"#;

#[test]
fn the_others_go_on_without_a_port_that_went_away() {
    let Some(site) = Site::new(3) else { return };
    let text = format!("on-port-loss = \"continue\"\n{THREE}");
    let running = site.start_network(&Folder::new(), &text, "");
    site.wait_for_answer(0, 2);
    change(&site.middle, "ip link del dev p2");
    eventually("the station is there", || site.round_trip(0, 2).is_none());
    site.wait_for_answer(0, 1);
    let (report, text) = running.stop_with_text();
    let ports = list(&report["ports"]);
    let error = ports[2]["lost"]["error"].as_str().expect("it is lost");
    assert!(error.contains("is gone"), "{error}");
    assert!(ports[0]["lost"].is_null() && ports[1]["lost"].is_null());
    let lost = &named(&report["links"], "ac.up")["drops"]["port_lost"];
    assert!(count(lost) >= 3, "{report}");
    assert!(text.contains("not faithful: port c was lost"), "{text}");
}

#[test]
fn by_default_a_lost_port_ends_the_run() {
    let Some(site) = Site::new(3) else { return };
    let running = site.start_network(&Folder::new(), THREE, "");
    change(&site.middle, "ip link del dev p1");
    running.running.end().exits(1).prints("p1 is gone");
}
