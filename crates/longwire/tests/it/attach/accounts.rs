//! Losses under traffic: the link reports each, or an event explains it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::sysctl;
use longwire_testbed::{Plan, Side};
use serde_json::Value;

use super::closed::{Numbered, number, wait_for_arrivals};
use super::{Joined, name_of};
use crate::common::site::{run_in, well};

/// Selects near's numbered datagrams, so that the link's counters cover nothing else.
const FILTER: [&str; 2] = ["--filter", "udp dst port 9000"];

/// Triggers events while near sends numbered datagrams.
fn under_traffic<T>(joined: &Joined, events: impl FnOnce() -> T) -> (Numbered, T) {
    joined.assert_round_trip(0.0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stream = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
        thread::sleep(Duration::from_millis(50));
        let happened = events();
        thread::sleep(Duration::from_millis(50));
        over.store(true, Ordering::Relaxed);
        (stream.join().expect("a stream"), happened)
    })
}

fn missing(stream: &Numbered) -> Vec<usize> {
    let arrived: HashSet<usize> = stream.arrived.iter().map(|(number, _)| *number).collect();
    assert_eq!(arrived.len(), stream.arrived.len(), "none arrives twice");
    let sent = 0..stream.sent.len();
    sent.filter(|number| !arrived.contains(number)).collect()
}

fn count(link: &Value, field: &str) -> u64 {
    link[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} of {link}"))
}

#[test]
fn losses_equal_the_reported_ones() {
    let Some(joined) = Joined::new() else { return };
    let (stream, reports) = under_traffic(&joined, || {
        let mut reports = Vec::new();
        for (round, loss) in ["0%", "5%", "30%", "0%"].into_iter().enumerate() {
            let name = name_of(&format!("account{round}"));
            let options = [&FILTER[..], &["--delay", "4ms", "--loss", loss]].concat();
            let attached = joined.attach(&name, &options);
            thread::sleep(Duration::from_millis(40));
            attached.set(&["delay=8ms"]);
            thread::sleep(Duration::from_millis(40));
            reports.push(attached.detach());
        }
        reports
    });
    let (mut dropped, mut carried, mut unseen) = (0, 0, 0);
    for report in &reports {
        let up = &report["links"][0];
        let drops = up["drops"].as_object();
        let of_link: u64 = drops.map_or(0, |drops| drops.values().filter_map(Value::as_u64).sum());
        assert_eq!(
            count(up, "packets_in"),
            count(up, "packets_out") + of_link,
            "{up}"
        );
        let received = &report["links"][1];
        assert_eq!(
            count(received, "packets_in"),
            0,
            "nothing comes from port 9000"
        );
        dropped += of_link;
        carried += count(up, "packets_in");
        // The kernel drops frames while the port's thread waits for a core.
        let ports = report["ports"].as_array().expect("ports");
        let ring_full = ports
            .iter()
            .map(|port| count(&port["artifacts"], "ring_full"));
        unseen += ring_full.sum::<u64>();
    }
    assert!(carried > 1_000, "{carried} of {}", stream.sent.len());
    assert!(dropped > 50, "{dropped}");
    assert_eq!(
        missing(&stream).len() as u64,
        dropped + unseen,
        "every loss is in a report"
    );
    joined.assert_clean();
}

#[test]
fn a_kill_loses_what_is_on_the_link() {
    const DELAY: Duration = Duration::from_millis(20);
    let Some(joined) = Joined::new() else { return };
    let options = [&FILTER[..], &["--delay", "20ms"]].concat();
    let (stream, (begin, kill, end)) = under_traffic(&joined, || {
        let attached = joined.attach(&name_of("lost"), &options);
        let begin = Instant::now();
        // More than the link holds at a time, so the link delivers.
        wait_for_arrivals(&joined, 500);
        let before = Instant::now();
        attached.kill();
        (begin, before, Instant::now())
    });
    let missing = missing(&stream);
    joined.assert_clean();
    let Some(&first) = missing.first() else {
        // A sender paused by the machine for as long leaves the link empty.
        let paused = stream
            .sent
            .windows(2)
            .any(|pair| pair[1] + DELAY >= kill && pair[0] <= end && pair[1] - pair[0] >= DELAY);
        assert!(paused, "frames were on the link");
        return;
    };
    let delivered = stream.sent[first] > begin;
    assert!(delivered, "no frame has crossed the link");
    // The link keeps the order, so the kill loses the last frames on it. A frame was
    // sent before the kill if the sender had begun the next one.
    let on_link = stream.sent.partition_point(|at| *at <= kill);
    let on_link = first..on_link.saturating_sub(1);
    let arrived = |number: &usize| missing.binary_search(number).is_err();
    let later: Vec<usize> = on_link.filter(arrived).collect();
    assert!(later.is_empty(), "{first} was lost before {later:?}");
    // The link takes frames until the process ends.
    for number in missing {
        let after = stream.sent[number] > end;
        assert!(!after, "{number} was lost after the end");
    }
}

#[test]
fn later_fragments_have_no_ports() {
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    for (filter, expected) in [("udp dst port 9000", 1), ("udp", 3), ("fragment", 3)] {
        let options = ["--filter", filter, "--delay", "2ms"];
        let attached = joined.attach(&name_of("pieces"), &options);
        let socket = joined.near.run(|| std::net::UdpSocket::bind("0.0.0.0:0"));
        let socket = socket.expect("entered").expect("a socket");
        let sent = socket.send_to(&[7; 4_000], (joined.far_address, 9_000));
        assert_eq!(sent.expect("three fragments"), 4_000);
        thread::sleep(Duration::from_millis(30));
        let report = attached.detach();
        let up = &report["links"][0];
        assert_eq!(count(up, "packets_in"), expected, "{filter}: {up}");
    }
}

#[test]
fn the_way_back_has_source_and_destination_exchanged() {
    let Some(joined) = Joined::new() else { return };
    let attached = joined.attach(
        &name_of("back"),
        &[
            "--filter",
            "icmp and dst host 10.199.7.1",
            "--delay",
            "20ms",
        ],
    );
    let other = "10.199.7.1".parse().expect("an address");
    let add = |address: &str| longwire_io::net::addr_add("eth0", address.parse().expect("one"), 24);
    joined
        .far
        .run(|| add("10.199.7.1"))
        .expect("entered")
        .expect("an address");
    joined
        .near
        .run(|| add("10.199.7.2"))
        .expect("entered")
        .expect("an address");
    joined.assert_round_trip(0.0);
    let found = joined.round_trip_to(other).expect("answers");
    assert!(found > 39.9 && found < 55.0, "{found} ms");
    let report = attached.detach();
    assert_eq!(count(&report["links"][0], "packets_in"), 8, "{report}");
    assert_eq!(count(&report["links"][1], "packets_in"), 8, "{report}");
}

#[test]
fn a_forwarded_packet_crosses_both_directions() {
    const PACKETS: u64 = 20;
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    let near = Plan::USUAL.v4_of(Side::Near).to_string();
    let far = joined.far_address.to_string();
    // Near is a one-armed router: packets from far go back to far.
    let route = |namespace, by: &str| {
        let words = ["ip", "route", "add", "10.90.0.0/24", "via", by];
        let _ = well(&words, run_in(namespace, &words));
    };
    route(&joined.near, &far);
    route(&joined.far, &near);
    let forward = joined.near.run(|| {
        sysctl::set("ipv4/ip_forward", "1")?;
        sysctl::set("ipv4/conf/eth0/send_redirects", "0")?;
        sysctl::set("ipv4/conf/all/send_redirects", "0")
    });
    forward.expect("entered").expect("settings");
    let options = ["--filter", "udp", "--delay", "5ms", "--up-loss", "100%"];
    let attached = joined.attach(&name_of("forwarded"), &options);
    let socket = joined.far.run(|| std::net::UdpSocket::bind("0.0.0.0:0"));
    let socket = socket.expect("entered").expect("a socket");
    for _ in 0..PACKETS {
        let sent = socket.send_to(&[7; 100], ("10.90.0.1", 9_000));
        sent.expect("a datagram");
    }
    thread::sleep(Duration::from_millis(50));
    let report = attached.detach();
    let [up, down] = [0, 1].map(|link: usize| &report["links"][link]);
    assert_eq!(count(down, "packets_out"), PACKETS, "{down}");
    assert_eq!(count(up, "packets_in"), PACKETS, "{up}");
    assert_eq!(count(up, "packets_out"), 0, "{up}");
}

#[test]
fn an_interface_that_is_moved_away_works_there() {
    let Some(joined) = Joined::new() else { return };
    let attached = joined.attach(&name_of("moved"), &["--delay", "5ms"]);
    joined.assert_round_trip(10.0);
    let third = longwire_io::net::NetNamespace::new().expect("a namespace");
    let moved = joined
        .near
        .run(|| longwire_io::net::link::move_to("eth0", &third));
    moved.expect("entered").expect("moved");
    let ran = attached.program.end();
    assert!(ran.stdout.contains("is gone"), "{ran:?}");
    let address = longwire_testbed::Plan::USUAL.v4_of(Side::Near);
    let set_up = || {
        longwire_io::net::addr_add("eth0", address.into(), 24)?;
        longwire_io::net::link_up("eth0")
    };
    third.run(set_up).expect("entered").expect("up");
    let words = [
        "ping",
        "-c",
        "2",
        "-i",
        "0.1",
        "-W",
        "2",
        "-q",
        &joined.far_address.to_string(),
    ];
    let ran = run_in(&third, &words);
    assert!(ran.stdout.contains(" 0% packet loss"), "{ran:?}");
    joined.assert_clean();
}
