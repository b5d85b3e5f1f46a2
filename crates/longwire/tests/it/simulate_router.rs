//! Link routers in virtual time: captures of their ICMP errors, accurate to the nanosecond.

use longwire_packet::icmp::{Refusal, RouterAddresses, write_error};
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet};
use longwire_testbed::support::{Folder, capture};

use crate::common::program::{json_of, longwire};
use crate::common::{EPOCH, MS, captured, count, list, write};

const NEAR: [u8; 4] = [10, 0, 0, 1];
const FAR: [u8; 4] = [10, 0, 0, 2];

/// Returns a datagram from one host to the other.
fn packet(from_near: bool, ttl: u8, payload: usize) -> Vec<u8> {
    let (source, destination) = if from_near { (NEAR, FAR) } else { (FAR, NEAR) };
    let ip = Ipv4 {
        source,
        destination,
        ttl,
        fragment: 0x4000,
        ..PLAIN4
    };
    let mut frame = ethernet(&[], 0x0800, &ip.packet(17, &vec![0x5a; payload]));
    frame[..12].fill(2);
    (frame[5], frame[11]) = (destination[3], source[3]);
    frame
}

/// Returns a router's ICMP error, computed by `longwire-packet`, which tests such errors against
/// scapy.
fn error(frame: &[u8], refusal: Refusal, last: u8) -> Vec<u8> {
    let router = RouterAddresses {
        v4: [192, 0, 2, last].into(),
        v6: "fe80::8".parse().expect("an address"),
    };
    let mut error = Vec::new();
    assert!(write_error(frame, refusal, &router, &mut error));
    error
}

/// Returns the frame as forwarded by a router.
fn forwarded(mut frame: Vec<u8>) -> Vec<u8> {
    frame[22] -= 1;
    frame[24..26].fill(0);
    longwire_packet::repair_checksums(&mut frame);
    frame
}

/// Returns packets from near that expire, pass or are too long, and continuous traffic from far.
fn traffic() -> Vec<(u64, Vec<u8>)> {
    vec![
        (EPOCH, packet(false, 64, 100)),
        (EPOCH + MS, packet(true, 1, 100)),
        (EPOCH + 2 * MS, packet(true, 64, 100)),
        (EPOCH + 3 * MS, packet(false, 1, 100)),
        (EPOCH + 4 * MS, packet(true, 64, 1_400)),
    ]
}

/// Simulates the traffic with these options.
fn simulated(options: &str) -> (Vec<(u64, String, Vec<u8>)>, serde_json::Value) {
    let dir = Folder::new();
    let (from, to) = (dir.file("in.pcap"), dir.file("out.pcap"));
    write(&from, capture::pcap(1, traffic()));
    let ran = longwire(format!("simulate {from} {to} --json {options}")).well();
    (captured(&to), ran.json())
}

#[test]
fn errors_leave_by_the_port_where_their_packets_came() {
    let sent = traffic();
    for queue in ["100p", "codel"] {
        let options = "--delay 10ms --near 10.0.0.1 --mtu 1300 --up-router 192.0.2.9";
        let (left, report) = simulated(&format!("{options} --queue {queue}"));
        let late = |at: usize| sent[at].0 + 10 * MS;
        // Errors are sent immediately, before earlier frames of far. Direction down has no router,
        // so it delivers packets with one hop left.
        let expected = [
            (sent[1].0, error(&sent[1].1, Refusal::Expired, 9)),
            (sent[4].0, error(&sent[4].1, Refusal::TooBig(1_300), 9)),
            (late(0), sent[0].1.clone()),
            (late(2), forwarded(sent[2].1.clone())),
            (late(3), sent[3].1.clone()),
        ];
        let expected = expected.map(|(at, bytes)| (at, String::new(), bytes));
        assert_eq!(left, expected, "{queue}");
        let counts = |link: usize, name: &str| count(&report["links"][link][name]);
        assert_eq!([counts(0, "icmp_sent"), counts(1, "icmp_sent")], [2, 0]);
        assert_eq!([counts(0, "packets_in"), counts(0, "in_flight")], [3, 0]);
    }
}

#[test]
fn one_direction_counts_errors_that_have_no_way_back() {
    let (left, report) = simulated("--router hop --rewrite ip:ttl=62");
    assert_eq!(left.len(), 3);
    let link = &report["links"][0];
    assert_eq!([&link["icmp_sent"], &link["drops"]["ttl"]], [2, 2]);
}

/// Two links in series between two of three ports.
const NETWORK: &str = r#"
[ports]
near = "null"
far = "null"
third = "null"
[switching]
mode = "static"
stations = { "02:02:02:02:02:01" = "near", "02:02:02:02:02:02" = "far" }
[[link]]
name = "first"
router = "192.0.2.9"
delay = "3ms"
[[link]]
name = "second"
router = "192.0.2.10"
mtu = 1300
delay = "4ms"
[[path]]
name = "way"
via = ["first", "second"]
match = "in-port=near"
match-back = "in-port=far"
"#;

/// The second router of a path replies once the packet has crossed the first link, and the reply
/// leaves immediately. Shards, a switch and a third port do not change this.
#[test]
fn errors_of_a_network_leave_by_the_port_of_entry() {
    let sent = [(1, 64), (2, 64), (3, 64), (9, 1_400)].map(|(ttl, len)| packet(true, ttl, len));
    let at = |number: usize| EPOCH + number as u64 * MS;
    let once = |number: usize| forwarded(sent[number].clone());
    let mut expected = [
        (at(0), "near", error(&sent[0], Refusal::Expired, 9)),
        (
            at(1) + 3 * MS,
            "near",
            error(&once(1), Refusal::Expired, 10),
        ),
        (at(2) + 7 * MS, "far", forwarded(once(2))),
        (
            at(3) + 3 * MS,
            "near",
            error(&once(3), Refusal::TooBig(1_300), 10),
        ),
    ]
    .map(|(at, port, bytes)| (at, port.to_owned(), bytes));
    expected.sort();
    for shards in ["", "--shards 2"] {
        let dir = Folder::new();
        let [file, input, out] = ["n.toml", "in.pcap", "out.pcapng"].map(|name| dir.file(name));
        write(&file, NETWORK);
        let frames = (0..).zip(&sent).map(|(number, bytes)| (at(number), bytes));
        write(&input, capture::pcap(1, frames));
        let files = format!("--in near={input} --out {out}");
        let report = json_of(format!("simulate {file} {files} --json {shards}"));
        let mut found = captured(&out);
        assert!(found.is_sorted_by_key(|(at, _, _)| *at), "{shards}");
        found.sort();
        assert_eq!(found, expected, "{shards}");
        let links = list(&report["links"]).iter();
        let sum: u64 = links.map(|link| count(&link["icmp_sent"])).sum();
        assert_eq!((sum, &report["in_flight"]), (3, &0.into()), "{shards}");
    }
}
