//! The bridge of `longwire run FILE.toml` with real stations on its ports: ARP, IPv6
//! neighbour discovery, and VLAN tags.
//!
//! Where namespaces are not allowed the tests pass without having run, except
//! in CI.

use crate::common::process::{Capture, records, tshark};
use crate::common::site::{Site, address, assert_nothing_lost, link};
use crate::common::{have, write};
use longwire_testbed::support::Folder;

/// Four stations on a bridge without links: frames leave at once.
const BRIDGE: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"
d = "packet:p3"
"#;

/// Writes a topology of a bridge with four ports and these lines; returns its path.
fn bridge(dir: &Folder, lines: &str) -> String {
    let file = dir.file("bridge.toml");
    write(&file, format!("{BRIDGE}{lines}").as_bytes());
    file
}

#[test]
fn stations_find_one_another_by_both_protocols() {
    let Some(site) = Site::new(4) else { return };
    let six = |station: usize| format!("fd00:9::{}", station + 1);
    for station in 0..4 {
        let prefix = format!("{}/64", six(station));
        let add = ["ip", "addr", "add", &prefix, "dev", "eth0", "nodad"];
        site.said(station, &add);
    }
    let dir = Folder::new();
    let lines =
        "[[link]]\nname = \"six\"\nmatch = \"src=fd00:9::1,dst=fd00:9::2\"\ndelay = \"20ms\"\n";
    let network = site.start(&bridge(&dir, lines));
    for (from, to) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let four = address(to).to_string();
        for (its, delays) in [(four, 0.0), (six(to), 40.0)] {
            let expected = if (from, to) == (0, 1) { delays } else { 0.0 };
            site.assert_round_trip(from, &its, expected);
            let known = site.said(from, &["ip", "neigh", "show", &its, "dev", "eth0"]);
            assert!(known.contains(&site.mac(to)), "{from} of {to}: {known}");
        }
    }
    let report = network.stop();
    let switch = &report["switch"];
    assert_eq!(switch["learnt"], 4, "{switch}");
    // Each station was resolved by broadcast and multicast; all other frames went to
    // one port.
    let flooded = |kind: usize| switch["flooded"][kind].as_u64().unwrap_or(0);
    assert!(flooded(0) >= 3 && flooded(1) >= 6, "{switch}");
    assert!(
        switch["forwarded"].as_u64() >= Some(2 * 2 * 6 * 4),
        "{switch}"
    );
    assert_eq!(
        [&switch["loop_signs"], &switch["moved"]],
        [0, 0],
        "{switch}"
    );
    assert_nothing_lost(&report);
}

/// Sends VLAN-tagged frames from one station to another.
fn tagged(site: &Site, from: usize, to: usize, vlan: &str, count: &str) {
    let (source, destination) = (site.mac(from), site.mac(to));
    let macs = ["--src-mac", &source, "--dst-mac", &destination];
    let pace = ["--rate", "500pps", "--count", count];
    let what = ["--sizes", "100", "--vlan", vlan];
    let program = [env!("CARGO_BIN_EXE_longwire"), "generate", "-q"];
    let port = ["--to", "packet:eth0"];
    site.said(from, &[&program[..], &port, &macs, &pace, &what].concat());
}

#[test]
fn vlan_tags_are_carried_and_choose_links() {
    let Some(site) = Site::without_addresses(4) else {
        return;
    };
    if !have("dumpcap") || !have("tshark") {
        return;
    }
    let dir = Folder::new();
    let lines =
        "[[link]]\nname = \"seven\"\nmatch = \"vlan=7\"\nshared = true\nloss = \"nth:every=2\"\n";
    let network = site.start(&bridge(&dir, lines));
    // The second station is known in one of the two networks only.
    tagged(&site, 1, 0, "7", "2");
    let only = ["-i", "eth0", "-f", "vlan"];
    let captures = [1, 2].map(|station| {
        let name = format!("at{station}.pcap");
        Capture::start(&dir, &name, &site.stations[station], &only)
    });
    tagged(&site, 0, 1, "7:5", "100");
    tagged(&site, 0, 1, "8", "60");
    let [there, elsewhere] = captures.map(|capture| capture.with_frames(60));
    let count = |file: &str, filter: &str| tshark(file, filter).lines().count();
    // Half of the frames of network 7 are lost, and the rest keep tag and priority;
    // network 8 has no link.
    assert_eq!(count(&there, "vlan.id == 7 && vlan.priority == 5"), 50);
    assert_eq!(count(&there, "vlan.id == 8 && vlan.priority == 0"), 60);
    assert_eq!(records(&there).len(), 110);
    // Flooded: the destination is unknown in network 8.
    assert_eq!(count(&elsewhere, "vlan.id == 8"), 60);
    assert_eq!(records(&elsewhere).len(), 60);
    let report = network.stop();
    // One of the two frames back was also lost.
    let lost = link(&report, "seven")["drops"]["loss"].as_u64();
    assert_eq!(lost, Some(51), "{report}");
    assert_nothing_lost(&report);
}
