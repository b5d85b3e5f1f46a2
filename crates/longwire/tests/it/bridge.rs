//! The bridge of `longwire run FILE.toml` with real stations on its ports:
//! they find one another by ARP and by IPv6 neighbour discovery, move from
//! port to port, carry VLAN tags, get leases by DHCP, and survive a loop.
//!
//! Where namespaces are not allowed the tests pass without having run, except
//! in CI.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::process::{Capture, RunningProgram, records, tshark, wait_for_word};
use crate::common::site::{Site, address, assert_nothing_lost, link};
use crate::common::{have, write};
use longwire_io::net::{addr_add, link_stats};
use longwire_testbed::support::{Folder, device, wire, words};
use nix::sys::signal::Signal;

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

/// Returns the line of a station's neighbour table for an address.
fn neighbour(site: &Site, station: usize, of: &str) -> String {
    site.said(station, &["ip", "neigh", "show", of, "dev", "eth0"])
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
            site.assert_not_early(from, &its, expected);
            let known = neighbour(&site, from, &its);
            assert!(known.contains(&site.mac(to)), "{from} of {to}: {known}");
        }
    }
    let report = network.stop();
    let six = link(&report, "six.up")["packets_in"].as_u64();
    assert!(six >= Some(4), "{report}");
    // The echoes of all other pairs.
    assert!(report["passed"].as_u64() >= Some(11 * 8), "{report}");
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

#[test]
fn a_station_that_moves_is_found_at_its_new_port() {
    let Some(site) = Site::new(4) else { return };
    let dir = Folder::new();
    let network = site.start(&bridge(&dir, ""));
    assert!(site.round_trip(0, 1).is_some(), "no answer before");
    // The last station takes over the address of the second, which stops using it.
    let (mac, moved) = (site.mac(1), format!("{}/24", address(1)));
    site.said(1, &["ip", "addr", "del", &moved, "dev", "eth0"]);
    let other = "02:00:00:00:00:99";
    site.said(1, &["ip", "link", "set", "eth0", "address", other]);
    site.said(3, &["ip", "link", "set", "eth0", "address", &mac]);
    site.said(3, &["ip", "addr", "add", &moved, "dev", "eth0"]);
    // The new port is unknown until the station sends.
    let from = address(1).to_string();
    let to = address(2).to_string();
    site.said(3, &["ping", "-c", "1", "-W", "5", "-I", &from, &to]);
    assert!(site.round_trip(0, 1).is_some(), "no answer after");
    let known = neighbour(&site, 0, &address(1).to_string());
    assert!(known.contains(&mac), "{known}");
    let report = network.stop();
    let switch = &report["switch"];
    assert!(switch["moved"].as_u64() >= Some(1), "{switch}");
    assert_eq!(switch["loop_signs"], 0, "{switch}");
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

/// Returns the number of frames that arrived at a station.
fn arrived(site: &Site, station: usize) -> u64 {
    let stats = site.stations[station].run(|| link_stats("eth0"));
    let stats = stats.expect("it is entered").expect("it is there");
    stats.rx_packets
}

#[test]
fn a_storm_in_a_loop_is_bounded_and_reported() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    // The third and fourth ports are the ends of one wire.
    let loop_wire = || wire(device("p2", None), device("p3", None));
    let made = site.middle.run(loop_wire);
    made.expect("it is entered").expect("a wire");
    let dir = Folder::new();
    let lines = "[switching]\nmode = \"bridge\"\nstorm-limit = \"500pps\"\nstorm-burst = 50\n";
    let network = site.start(&bridge(&dir, lines));
    let mut broadcasts = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let to = words("--to packet:eth0 --dst-mac ff:ff:ff:ff:ff:ff");
    broadcasts.args(["generate", "-q", "--rate", "200pps", "--time", "60s"]);
    broadcasts.args(to).stdout(Stdio::null());
    let sending = RunningProgram::start(&site.stations[0], &mut broadcasts);
    // Wait until bursts are used up.
    std::thread::sleep(Duration::from_secs(2));
    // The station's frames plus the limit at each end: each frame circulates until the
    // limit drops it, so the limit is always saturated. A pause of the machine shifts
    // its window.
    let rates: Vec<f64> = (0..5)
        .map(|_| {
            let (began, before) = (Instant::now(), arrived(&site, 1));
            std::thread::sleep(Duration::from_secs(3));
            let frames = arrived(&site, 1) - before;
            frames as f64 / began.elapsed().as_secs_f64()
        })
        .take_while(|rate| (rate - 1_200.0).abs() >= 60.0)
        .collect();
    sending.signal(Signal::SIGINT);
    assert_eq!(sending.end().code, 0);
    assert!(rates.len() < 5, "{rates:?} frames a second");
    let (report, words) = network.stop_with_words();
    let switch = &report["switch"];
    let stopped = switch["not_forwarded"]["storm"].as_u64();
    assert!(stopped >= Some(2 * 200), "{switch}");
    assert!(switch["loop_signs"].as_u64() >= Some(1), "{switch}");
    assert!(words.contains("signs of a loop"), "{words}");
}

/// DHCP crosses a slow link that loses the first request, as do pings once there is an
/// address.
const DHCP: &str = r#"
[[link]]
name = "client"
match = ["in-port=d,proto=udp", "in-port=d,proto=icmp"]
delay = "100ms"
up = { loss = "list:packets=1" }
down = { match = ["in-port=a,proto=udp", "in-port=a,proto=icmp"] }
"#;

/// The script that udhcpc calls with its lease.
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
    let network = site.start(&bridge(&dir, DHCP));
    let given = site.stations[0].run(|| addr_add("eth0", address(0).into(), 24));
    given.expect("it is entered").expect("an address");
    let leases = format!("--dhcp-leasefile={}", dir.file("leases"));
    let mut server = Command::new("dnsmasq");
    // No DNS, and no probing of offered addresses.
    server.args(["--no-daemon", "--conf-file=/dev/null", "--port=0", &leases]);
    server.args(["--no-ping", "--interface=eth0"]);
    server.arg("--dhcp-range=10.9.0.100,10.9.0.150,255.255.255.0,1h");
    server.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = RunningProgram::start(&site.stations[0], &mut server);
    wait_for_word(&mut server, "IP range");
    let script = dir.file("lease.sh");
    write(&script, LEASE.as_bytes());
    site.said(3, &["chmod", "+x", &script]);
    let timeout = ["-n", "-q", "-f", "-t", "5", "-T", "1"];
    let client = ["udhcpc", "-i", "eth0", "-s", &script];
    site.said(3, &[&client[..], &timeout].concat());
    let has = site.said(3, &["ip", "-4", "addr", "show", "dev", "eth0"]);
    assert!(has.contains("inet 10.9.0.1"), "{has}");
    site.assert_not_early(3, &address(0).to_string(), 200.0);
    let report = network.stop();
    let (up, down) = (link(&report, "client.up"), link(&report, "client.down"));
    let drops = |link: &serde_json::Value| -> u64 {
        let drops = link["drops"].as_object().expect("drops").values();
        drops.filter_map(serde_json::Value::as_u64).sum()
    };
    assert_eq!((&up["drops"]["loss"], drops(up)), (&1.into(), 1), "{up}");
    assert_eq!(drops(down), 0, "{down}");
    // Two discoveries, one of them lost, a request and four echoes; an offer, an
    // acknowledgement and four replies.
    assert!(up["packets_in"].as_u64() >= Some(7), "{up}");
    assert!(down["packets_out"].as_u64() >= Some(6), "{down}");
    assert_nothing_lost(&report);
}
