use alloc::vec;
use alloc::vec::Vec;

use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet};

use super::{FlowHash, FlowKeys, flow_hash, plain_start};

const B: [u8; 4] = [10, 0, 0, 2];
const C: [u8; 4] = [192, 168, 7, 9];
const HTTP: [u8; 8] = [0xc0, 0x01, 0, 80, 0, 8, 0, 0];
const DNS: [u8; 8] = [0xc0, 0x01, 0, 53, 0, 8, 0, 0];
const UDP: u8 = 17;

/// Returns an IPv4 packet with these flags and offset.
fn v4_piece(fragment: u16, protocol: u8, to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let header = Ipv4 {
        fragment,
        destination: to,
        ..PLAIN4
    };
    header.packet(protocol, payload)
}

fn v4(protocol: u8, to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    v4_piece(0, protocol, to, payload)
}

fn v6(label: u16, next: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let label = label.to_be_bytes();
    let head = [0x60, 0, label[0], label[1], len[0], len[1], next, 64];
    let (mut source, mut destination) = ([0xfd; 16], [0xfd; 16]);
    (source[15], destination[15]) = (1, to);
    [&head[..], &source, &destination, payload].concat()
}

fn gre(flags: u16, kind: u16, fields: &[u8], payload: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes(), &kind.to_be_bytes(), fields, payload].concat()
}

fn pppoe(protocol: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = (protocol.len() + payload.len()) as u8;
    let packet = [&[0x11, 0, 0, 1, 0, len], protocol, payload].concat();
    ethernet(&[], 0x8864, &packet)
}

fn hash(frame: &[u8]) -> u64 {
    flow_hash(frame, 7)
}

/// Checks that the inner port and address distinguish encapsulated flows.
fn looks_inside(name: &str, wrap: impl Fn(&[u8]) -> Vec<u8>) {
    let of = |packet: Vec<u8>| hash(&wrap(&packet));
    let flow = of(v4(UDP, B, &HTTP));
    assert_eq!(flow, of(v4(UDP, B, &HTTP)), "{name}");
    assert_ne!(flow, of(v4(UDP, B, &DNS)), "{name}: ports");
    assert_ne!(flow, of(v4(UDP, C, &HTTP)), "{name}: addresses");
    // Length and identification are not part of the key.
    let longer = [&HTTP[..], &[1; 60]].concat();
    assert_eq!(flow, of(v4(UDP, B, &longer)), "{name}: payload");
}

#[test]
fn fragments_of_a_datagram_are_one_flow() {
    let whole = hash(&ethernet(&[], 0x0800, &v4(UDP, B, &HTTP)));
    let first = hash(&ethernet(&[], 0x0800, &v4_piece(0x2000, UDP, B, &HTTP)));
    let middle = hash(&ethernet(&[], 0x0800, &v4_piece(0x2003, UDP, B, &[9; 24])));
    let last = hash(&ethernet(&[], 0x0800, &v4_piece(0x0006, UDP, B, &[3; 9])));
    assert_eq!((first, first), (middle, last));
    assert_ne!(first, whole, "a fragment has no ports");
    let other = hash(&ethernet(&[], 0x0800, &v4_piece(0x0006, UDP, C, &[3; 9])));
    assert_ne!(first, other);

    let piece = |field: u16, payload: &[u8]| {
        let [high, low] = field.to_be_bytes();
        let header = [UDP, 0, high, low, 0, 0, 0, 7];
        hash(&ethernet(
            &[],
            0x86dd,
            &v6(0, 44, 2, &[&header, payload].concat()),
        ))
    };
    assert_eq!(piece(1, &HTTP), piece(8, &[5; 8]));
    assert_eq!(piece(1, &HTTP), piece(1, &DNS));
}

#[test]
fn ipv4_has_no_extension_headers() {
    for protocol in [0, 43, 44, 60] {
        let hashes = [HTTP, DNS].map(|ports| {
            let payload = [&[UDP, 0, 0, 0, 0, 0, 0, 0], &ports[..]].concat();
            hash(&ethernet(&[], 0x0800, &v4(protocol, B, &payload)))
        });
        assert_eq!(hashes[0], hashes[1], "{protocol}");
    }
}

#[test]
fn ipv6_flows_in_pppoe_are_distinguished() {
    for protocol in [&[0, 0x57][..], &[0x57]] {
        let hashes = [HTTP, DNS].map(|ports| hash(&pppoe(protocol, &v6(0, UDP, 2, &ports))));
        assert_ne!(hashes[0], hashes[1], "{protocol:?}");
    }
}

#[test]
fn flows_inside_tunnels_are_distinguished() {
    looks_inside("plain", |packet| ethernet(&[], 0x0800, packet));
    looks_inside("PPPoE", |packet| pppoe(&[0, 0x21], packet));
    looks_inside("PPPoE, compressed", |packet| pppoe(&[0x21], packet));
    looks_inside("IP in IP", |packet| {
        ethernet(&[], 0x0800, &v4(4, C, packet))
    });
    looks_inside("IP in IPv6", |packet| {
        ethernet(&[], 0x86dd, &v6(0, 4, 2, packet))
    });
    for (flags, fields) in [(0u16, 0), (0x8000, 4), (0x2000, 4), (0xb000, 12)] {
        looks_inside("GRE", |packet| {
            let inner = gre(flags, 0x0800, &vec![1; fields], packet);
            ethernet(&[], 0x0800, &v4(47, C, &inner))
        });
    }
    looks_inside("Ethernet in GRE", |packet| {
        let inner = ethernet(&[], 0x8100, &[&[0, 5, 0x08, 0x00], packet].concat());
        ethernet(&[], 0x0800, &v4(47, C, &gre(0, 0x6558, &[], &inner)))
    });
    looks_inside("PPTP", |packet| {
        let fields = [0, 20, 0, 9, 0, 0, 0, 1];
        let ppp = [&[0xff, 0x03, 0x00, 0x21], packet].concat();
        ethernet(&[], 0x0800, &v4(47, C, &gre(0x3001, 0x880b, &fields, &ppp)))
    });
    looks_inside("VLAN", |packet| {
        ethernet(&[], 0x8100, &[&[0x20, 5, 0x08, 0x00], packet].concat())
    });
}

#[test]
fn ports_are_found_after_ipv6_options() {
    let options = |ports: &[u8]| {
        let hop = [60, 0, 1, 4, 0, 0, 0, 0];
        let destination = [43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let routing = [UDP, 0, 4, 0, 0, 0, 0, 0];
        let packet = [&hop[..], &destination, &routing, ports].concat();
        hash(&ethernet(&[], 0x86dd, &v6(0, 0, 2, &packet)))
    };
    assert_ne!(options(&HTTP), options(&DNS));
    assert_eq!(
        options(&HTTP),
        hash(&ethernet(&[], 0x86dd, &v6(0, UDP, 2, &HTTP)))
    );
}

#[test]
fn a_flow_label_replaces_the_ports() {
    let of = |label, ports: &[u8]| hash(&ethernet(&[], 0x86dd, &v6(label, UDP, 2, ports)));
    assert_ne!(of(0, &HTTP), of(0, &DNS));
    assert_eq!(of(5, &HTTP), of(5, &DNS));
    assert_ne!(of(5, &HTTP), of(6, &HTTP));
    assert_ne!(of(5, &HTTP), of(0, &HTTP));
}

#[test]
fn keys_tags_and_spis_separate_flows() {
    let keyed = |key: u8| {
        let inner = gre(0x2000, 0x0800, &[0, 0, 0, key], &v4(UDP, B, &HTTP));
        hash(&ethernet(&[], 0x0800, &v4(47, C, &inner)))
    };
    assert_ne!(keyed(1), keyed(2));
    let called = |len: u8, call: u8| {
        let ppp = [&[0xff, 0x03, 0x00, 0x21], &v4(UDP, B, &HTTP)[..]].concat();
        let inner = gre(0x2001, 0x880b, &[0, len, 0, call], &ppp);
        hash(&ethernet(&[], 0x0800, &v4(47, C, &inner)))
    };
    assert_ne!(called(20, 1), called(20, 2));
    assert_eq!(called(20, 1), called(60, 1));
    let tagged = |tag: u16| {
        let tag = [&tag.to_be_bytes()[..], &[0x08, 0x00]].concat();
        hash(&ethernet(
            &[],
            0x8100,
            &[&tag[..], &v4(UDP, B, &HTTP)].concat(),
        ))
    };
    assert_ne!(tagged(5), tagged(6));
    assert_ne!(tagged(5), tagged(0x2005));
    assert_eq!(tagged(5), tagged(0x1005), "eligible for drops");
    for (protocol, at) in [(50, 0), (51, 4)] {
        let with_spi = |spi: u8| {
            let mut header = [0; 12];
            header[at + 3] = spi;
            hash(&ethernet(&[], 0x0800, &v4(protocol, B, &header)))
        };
        assert_ne!(with_spi(1), with_spi(2), "{protocol}");
    }
}

#[test]
fn frames_without_ip_are_a_flow_per_address_pair_and_type() {
    let arp = ethernet(&[], 0x0806, &[1; 28]);
    assert_eq!(hash(&arp), hash(&ethernet(&[], 0x0806, &[2; 28])));
    assert_ne!(hash(&arp), hash(&ethernet(&[], 0x88cc, &[1; 28])));
    // PPP link control and MPLS, which Linux does not dissect.
    let ppp = |payload| hash(&pppoe(&[0xc0, 0x21], &[payload]));
    assert_eq!(ppp(1), ppp(2));
    let mpls = |packet: &[u8]| hash(&ethernet(&[], 0x8847, &[&[0, 1, 1, 64], packet].concat()));
    assert_eq!(mpls(&v4(UDP, B, &HTTP)), mpls(&v4(UDP, C, &DNS)));
    let mut other = arp.clone();
    other[11] = 9;
    assert_ne!(hash(&arp), hash(&other));
}

#[test]
fn truncated_and_malformed_frames_have_a_hash() {
    let inner = gre(0xb000, 0x0800, &[1; 12], &v4(4, C, &v4(UDP, B, &HTTP)));
    let frame = ethernet(&[], 0x0800, &v4(47, C, &inner));
    for len in 0..=frame.len() {
        hash(&frame[..len]);
    }
    let mut nested = v4(UDP, B, &HTTP);
    for _ in 0..200 {
        nested = v4(4, C, &nested);
    }
    hash(&ethernet(&[], 0x0800, &nested));
}

#[test]
fn plain_packets_have_the_hash_of_their_dissected_keys() {
    let packets = [
        v4(UDP, B, &HTTP),
        v4(6, C, &HTTP),
        v4(UDP, B, &[]),
        v4(1, B, &HTTP),
        v4_piece(0x4000, UDP, B, &HTTP),
        v4_piece(0x2000, UDP, B, &HTTP),
        v4_piece(0x0001, UDP, B, &HTTP),
    ];
    let plain = packets.map(|packet| {
        let frame = ethernet(&[], 0x0800, &packet);
        let mut dissected = FlowHash::new(7);
        dissected.absorb_keys(&frame, &FlowKeys::dissected(&frame));
        assert_eq!(hash(&frame), dissected.finish());
        plain_start(&frame).is_some()
    });
    assert_eq!(plain, [true, true, false, false, true, false, false]);
}
