//! Directions of hand-written frames.

use alloc::string::ToString;

use proptest::prelude::*;

use core::net::Ipv6Addr;

use super::*;

const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ALL: [u8; 6] = [0xff; 6];

fn sides(near: &[&str]) -> Sides {
    let near = near.iter().map(|text| text.parse().unwrap());
    Sides::new(&near.collect::<Vec<Near>>())
}

fn frame(from: [u8; 6], to: [u8; 6], rest: &[u8]) -> Vec<u8> {
    [&to[..], &from, rest].concat()
}

fn ipv4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    [&[0x08, 0x00, 0x45][..], &[0; 11], &source, &destination].concat()
}

fn ipv6(source: &str, destination: &str) -> Vec<u8> {
    let octets = |text: &str| text.parse().map_or([0; 16], |ip: Ipv6Addr| ip.octets());
    let (source, destination) = (octets(source), octets(destination));
    [&[0x86, 0xdd, 0x60][..], &[0; 7], &source, &destination].concat()
}

fn arp(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let fixed = [0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1];
    [&fixed[..], &[0; 6], &sender, &[0; 6], &target].concat()
}

use Heading::{Down, Up};

#[test]
fn addresses_decide_the_direction() {
    let mut sides = sides(&["10.0.0.0/24", "2001:db8:1::/48"]);
    let (near, far) = ([10, 0, 0, 7], [192, 0, 2, 1]);
    for (rest, direction) in [
        (ipv4(near, far), Some(Up)),
        (ipv4(far, near), Some(Down)),
        // After a VLAN tag.
        ([&[0x81, 0, 0, 5][..], &ipv4(near, far)].concat(), Some(Up)),
        (ipv6("2001:db8:1::5", "2001:db8:2::5"), Some(Up)),
        (ipv6("2001:db8:2::5", "2001:db8:1::5"), Some(Down)),
        (arp(near, [10, 0, 0, 1]), Some(Up)),
        (arp(far, near), Some(Down)),
        // Neither address is near, but the source address is routable, so the frame is from the far
        // side.
        (ipv4(far, [224, 0, 0, 1]), Some(Down)),
    ] {
        // With zero MAC addresses.
        let frame = frame([0; 6], [0; 6], &rest);
        assert_eq!(sides.direction(&frame), direction, "{rest:?}");
    }
}

#[test]
fn frames_without_address_use_the_learned_station() {
    let mut sides = sides(&["10.0.0.0/24"]);
    let discover = ipv4([0; 4], [255; 4]);
    let solicit = ipv6("fe80::1", "ff02::1");
    let lldp = [0x88, 0xcc, 2, 7];
    let all = |sides: &mut Sides, from| {
        [&discover[..], &solicit, &lldp].map(|rest| sides.direction(&frame(from, ALL, rest)))
    };
    assert_eq!(all(&mut sides, NEAR), [None; 3]);
    let known = frame(NEAR, ALL, &arp([10, 0, 0, 7], [10, 0, 0, 1]));
    assert_eq!(sides.direction(&known), Some(Up));
    assert_eq!(all(&mut sides, NEAR), [Some(Up); 3]);
    assert_eq!(all(&mut sides, FAR), [None; 3]);
    // A frame to a known station comes from the opposite side.
    for rest in [&lldp[..], &ipv4([192, 0, 2, 1], [10, 0, 0, 7])] {
        assert_eq!(sides.direction(&frame(FAR, NEAR, rest)), Some(Down));
    }
    assert_eq!(all(&mut sides, FAR), [Some(Down); 3]);
    // Unknown IP addresses, but known stations.
    let other = frame(NEAR, FAR, &ipv6("2001:db8:9::1", "2001:db8:8::1"));
    assert_eq!(sides.direction(&other), Some(Up));
}

#[test]
fn a_station_seen_on_both_sides_is_ignored() {
    let mut sides = sides(&["10.0.0.7"]);
    let lldp = frame(NEAR, ALL, &[0x88, 0xcc, 2, 7]);
    let up = frame(NEAR, FAR, &ipv4([10, 0, 0, 7], [192, 0, 2, 1]));
    let down = frame(NEAR, FAR, &ipv4([192, 0, 2, 1], [10, 0, 0, 7]));
    for (frame, direction) in [
        (&up, Some(Up)),
        (&lldp, Some(Up)),
        (&down, Some(Down)),
        (&lldp, None),
        (&up, Some(Up)),
    ] {
        assert_eq!(sides.direction(frame), direction);
    }
}

#[test]
fn mac_addresses_decide_the_direction() {
    let mut sides = sides(&["02-00-00-00-00-01"]);
    let rest = ipv4([1, 2, 3, 4], [5, 6, 7, 8]);
    assert_eq!(sides.direction(&frame(NEAR, FAR, &rest)), Some(Up));
    assert_eq!(sides.direction(&frame(FAR, NEAR, &rest)), Some(Down));
    assert_eq!(sides.direction(&frame(FAR, ALL, &[0x88, 0xcc])), Some(Down));
}

#[test]
fn truncated_frames_do_not_panic() {
    let whole = frame(NEAR, FAR, &ipv6("2001:db8::1", "2001:db8::2"));
    for len in 0..whole.len() {
        let mut sides = sides(&["2001:db8::1"]);
        let direction = sides.direction(&whole[..len]);
        assert_eq!(direction.is_some(), len >= 38, "{len}");
    }
    let mut sides = sides(&["10.0.0.1"]);
    let whole = frame(NEAR, FAR, &arp([10, 0, 0, 1], [10, 0, 0, 2]));
    for len in 0..whole.len() {
        let _ = sides.direction(&whole[..len]);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(
        frames in proptest::collection::vec(
            // Biased towards types with addresses, which are rare in random bytes.
            (any::<[u8; 12]>(), 0..6usize, proptest::collection::vec(any::<u8>(), 0..60)),
            1..20,
        ),
    ) {
        const TYPES: [&[u8]; 6] = [
            &[0x08, 0], &[0x86, 0xdd], &[0x08, 6], &[0x81, 0, 0, 1, 0x08, 0],
            &[0x88, 0xa8, 0, 1, 0x81, 0], &[],
        ];
        let mut sides = sides(&["128.0.0.0/1", "8000::/1"]);
        for (macs, kind, rest) in frames {
            let frame = [&macs[..], TYPES[kind], &rest].concat();
            let first = sides.direction(&frame);
            // Learning from a frame does not change its own direction.
            let again = sides.direction(&frame);
            prop_assert!(first.is_none() || again.is_some());
        }
    }
}

#[test]
fn near_sides_are_parsed_and_printed() {
    for (text, written) in [
        ("10.0.0.1", "10.0.0.1/32"),
        ("10.1.2.3/8", "10.1.2.3/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("fe80::1", "fe80::1/128"),
        ("02:00:00:00:AB:01", "02:00:00:00:ab:01"),
    ] {
        let near = text.parse::<Near>().map(|near| near.to_string());
        assert_eq!(near.as_deref(), Ok(written));
    }
    for (text, complaint) in [
        ("", "not an IP address"),
        ("host", "not an IP address"),
        ("10.0.0", "not an IP address"),
        ("02:00:00:00:00", "not an IP address"),
        ("2:0:0:0:0:1", "not an IP address"),
        ("10.0.0.0/33", "outside 0..32"),
        ("::/129", "outside 0..128"),
        ("10.0.0.0/", "outside 0..32"),
    ] {
        let said = text.parse::<Near>().err().unwrap_or_default();
        assert!(said.contains(complaint), "{text}: {said}");
    }
}

#[test]
fn prefixes_contain_their_addresses() {
    for (near, address, holds) in [
        ("10.1.2.3/8", "10.255.0.1", true),
        ("10.1.2.3/8", "11.1.2.3", false),
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.2", false),
        ("0.0.0.0/0", "203.0.113.9", true),
        ("0.0.0.0/0", "::1", false),
        ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::1", false),
        ("::/0", "2001:db9::1", true),
        ("::/0", "10.0.0.1", false),
    ] {
        let (near, address): (Near, IpAddr) = (near.parse().unwrap(), address.parse().unwrap());
        assert_eq!(near.holds(address), holds, "{near} {address}");
    }
}
