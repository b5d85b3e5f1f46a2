//! The bridge of `longwire run FILE.toml` with real stations on its ports. Stations resolve each
//! other by ARP and IPv6 neighbour discovery, move between ports, use VLAN tags, obtain DHCP
//! leases, and survive a loop.
//!
//! Skipped without permission to create namespaces, except in CI.

use std::time::{Duration, Instant};

use crate::common::program::{Capture, background, start_in, tshark};
use crate::common::site::{Network, Site, address, assert_nothing_lost};
use crate::common::{count, have, named, records, sum, write};
use longwire_io::net::{addr_add, link_stats};
use longwire_testbed::support::{Folder, device, wire, within};

/// Four stations on a bridge without links: frames leave immediately.
const BRIDGE: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"
d = "packet:p3"
"#;

/// Starts a bridge with four ports and these additional lines.
fn start(site: &Site, lines: &str) -> Network {
    site.start_network(&Folder::new(), &format!("{BRIDGE}{lines}"), "")
}

/// Returns a station's neighbour table entry for an address.
fn neighbour(site: &Site, station: usize, of: &str) -> String {
    site.said(station, format!("ip neigh show {of} dev eth0"))
}

#[test]
fn stations_find_one_another_by_both_protocols() {
    let Some(site) = Site::new(4) else { return };
    let six = |station: usize| format!("fd00:9::{}", station + 1);
    for station in 0..4 {
        site.said(
            station,
            format!("ip addr add {}/64 dev eth0 nodad", six(station)),
        );
    }
    let lines =
        "[[link]]\nname = \"six\"\nmatch = \"src=fd00:9::1,dst=fd00:9::2\"\ndelay = \"20ms\"";
    let network = start(&site, lines);
    for (from, to) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let four = address(to).to_string();
        for (its, delays) in [(four, 0.0), (six(to), 40.0)] {
            let expected = if (from, to) == (0, 1) { delays } else { 0.0 };
            site.assert_not_early(from, &its, expected);
            let known = neighbour(&site, from, &its);
            assert!(known.contains(&site.mac(to)), "{from} of {to}: {known}");
        }
    }
    let report = network.stop();
    let six = named(&report["links"], "six.up");
    assert!(count(&six["packets_in"]) >= 4, "{report}");
    // Without a link: 11 of the 12 pairs of addresses, with four requests and four replies each.
    assert!(count(&report["passed"]) >= 11 * 8, "{report}");
    let switch = &report["switch"];
    // Each station was resolved by broadcast and multicast; the remaining frames went to one port
    // each.
    let flooded = [0, 1].map(|kind| count(&switch["flooded"][kind]));
    assert!(flooded[0] >= 3 && flooded[1] >= 6, "{switch}");
    assert!(count(&switch["forwarded"]) >= 2 * 2 * 6 * 4, "{switch}");
    let others = ["learnt", "loop_signs", "moved"].map(|name| count(&switch[name]));
    assert_eq!(others, [4, 0, 0], "{switch}");
    assert_nothing_lost(&report);
}

#[test]
fn a_station_that_moves_is_found_at_its_new_port() {
    let Some(site) = Site::new(4) else { return };
    let network = start(&site, "");
    assert!(site.round_trip(0, 1).is_some(), "no answer before");
    // The last station starts to use the second station's address; the second stops using it.
    let (mac, moved) = (site.mac(1), address(1));
    for (station, change) in [
        (1, format!("addr del {moved}/24 dev eth0")),
        (1, "link set eth0 address 02:00:00:00:00:99".to_owned()),
        (3, format!("link set eth0 address {mac}")),
        (3, format!("addr add {moved}/24 dev eth0")),
    ] {
        site.said(station, format!("ip {change}"));
    }
    // The switch learns the new port only when the station sends.
    site.said(3, format!("ping -c 1 -W 5 -I {moved} {}", address(2)));
    assert!(site.round_trip(0, 1).is_some(), "no answer after");
    let known = neighbour(&site, 0, &address(1).to_string());
    assert!(known.contains(&mac), "{known}");
    let report = network.stop();
    let switch = &report["switch"];
    let moved = count(&switch["moved"]) >= 1;
    assert!(moved && switch["loop_signs"] == 0, "{switch}");
    assert_nothing_lost(&report);
}

/// Sends VLAN-tagged frames from one station to another.
fn tagged(site: &Site, from: usize, to: usize, vlan: &str, count: u32) {
    let (source, destination) = (site.mac(from), site.mac(to));
    let line = format!(
        "longwire generate -q --to packet:eth0 --src-mac {source} --dst-mac {destination} \
         --rate 500pps --count {count} --sizes 100 --vlan {vlan}"
    );
    site.said(from, line);
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
        "[[link]]\nname = \"seven\"\nmatch = \"vlan=7\"\nshared = true\nloss = \"nth:every=2\"";
    let network = start(&site, lines);
    // Let the switch learn the second station in VLAN 7, but not in VLAN 8.
    tagged(&site, 1, 0, "7", 2);
    let captures = [1, 2].map(|station| {
        let name = format!("at{station}.pcap");
        Capture::start(&dir, &name, &site.stations[station], "-i eth0 -f vlan")
    });
    tagged(&site, 0, 1, "7:5", 100);
    tagged(&site, 0, 1, "8", 60);
    let [there, elsewhere] = captures.map(|capture| capture.with_frames(60));
    let matching = |file: &str, filter: &str| tshark(file, filter).lines().count();
    // VLAN 7 loses half of its frames; delivered frames keep tag and priority. VLAN 8 has no link.
    assert_eq!(matching(&there, "vlan.id == 7 && vlan.priority == 5"), 50);
    assert_eq!(matching(&there, "vlan.id == 8 && vlan.priority == 0"), 60);
    assert_eq!(records(&there).len(), 110);
    // Frames in VLAN 8 are flooded, because their destination is unknown there.
    assert_eq!(matching(&elsewhere, "vlan.id == 8"), 60);
    assert_eq!(records(&elsewhere).len(), 60);
    let report = network.stop();
    // The link also lost one of the two frames from which the switch learned the station.
    assert_eq!(
        named(&report["links"], "seven")["drops"]["loss"],
        51,
        "{report}"
    );
    assert_nothing_lost(&report);
}

/// Returns the number of frames that arrived at a station.
fn arrived(site: &Site, station: usize) -> u64 {
    within(&site.stations[station], || link_stats("eth0")).rx_packets
}

#[test]
fn a_storm_in_a_loop_is_bounded_and_reported() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    // Join the third port with the fourth.
    within(&site.middle, || {
        wire(device("p2", None), device("p3", None))
    });
    let lines = "[switching]\nmode = \"bridge\"\nstorm-limit = \"500pps\"\nstorm-burst = 50\n";
    let network = start(&site, lines);
    let broadcasts = "longwire generate -q --rate 200pps --time 60s --to packet:eth0 \
                      --dst-mac ff:ff:ff:ff:ff:ff";
    let sending = background(&site.stations[0], broadcasts);
    // Wait until every port has used up its burst.
    std::thread::sleep(Duration::from_secs(2));
    // 200 frames/s of the station, and 500 from each port of the loop: frames circulate until the
    // storm limit drops them, so it is always reached. A machine pause may distort one rate.
    let rates: Vec<f64> = (0..5)
        .map(|_| {
            let (began, before) = (Instant::now(), arrived(&site, 1));
            std::thread::sleep(Duration::from_secs(3));
            let frames = arrived(&site, 1) - before;
            frames as f64 / began.elapsed().as_secs_f64()
        })
        .take_while(|rate| (rate - 1_200.0).abs() >= 60.0)
        .collect();
    sending.stop();
    assert!(rates.len() < 5, "{rates:?} frames/s");
    let (report, text) = network.stop_with_text();
    let switch = &report["switch"];
    assert!(
        count(&switch["not_forwarded"]["storm"]) >= 2 * 200,
        "{switch}"
    );
    assert!(count(&switch["loop_signs"]) >= 1, "{switch}");
    assert!(text.contains("possible loop between ports"), "{text}");
}

/// DHCP over a slow link that drops the first request, followed by pings.
const DHCP: &str = r#"
[[link]]
name = "client"
match = ["in-port=d,proto=udp", "in-port=d,proto=icmp"]
delay = "100ms"
up = { loss = "list:packets=1" }
down = { match = ["in-port=a,proto=udp", "in-port=a,proto=icmp"] }
"#;

/// Script that udhcpc runs with its lease.
const LEASE: &str = "#!/bin/sh\n\
    [ \"$1\" != bound ] || ip addr add \"$ip/$mask\" dev \"$interface\"\n";

#[test]
fn a_lease_arrives_by_dhcp_over_a_slow_link() {
    let Some(site) = Site::without_addresses(4) else {
        return;
    };
    if !have("dnsmasq") || !have("udhcpc") {
        return;
    }
    let dir = Folder::new();
    let network = start(&site, DHCP);
    within(&site.stations[0], || {
        addr_add("eth0", address(0).into(), 24)
    });
    // Disable DNS and the probing of offered addresses.
    let server = format!(
        "dnsmasq --no-daemon --conf-file=/dev/null --port=0 --dhcp-leasefile={} --no-ping \
         --interface=eth0 --dhcp-range=10.9.0.100,10.9.0.150,255.255.255.0,1h",
        dir.file("leases")
    );
    let _server = start_in(&site.stations[0], server).ready("IP range");
    let script = dir.file("lease.sh");
    write(&script, LEASE);
    site.said(3, format!("chmod +x {script}"));
    site.said(3, format!("udhcpc -i eth0 -s {script} -n -q -f -t 5 -T 1"));
    let has = site.said(3, "ip -4 addr show dev eth0");
    assert!(has.contains("inet 10.9.0.1"), "{has}");
    site.assert_not_early(3, &address(0).to_string(), 200.0);
    let report = network.stop();
    let [up, down] = ["client.up", "client.down"].map(|name| named(&report["links"], name));
    assert_eq!(
        (&up["drops"]["loss"], sum(&up["drops"])),
        (&1.into(), 1),
        "{up}"
    );
    assert_eq!(sum(&down["drops"]), 0, "{down}");
    // Up: two discovers, of which one is lost, a request and four echoes. Down: an offer, an
    // acknowledgement and four replies.
    assert!(count(&up["packets_in"]) >= 7, "{up}");
    assert!(count(&down["packets_out"]) >= 6, "{down}");
    assert_nothing_lost(&report);
}
