//! Encapsulated packets, compared with frames that scapy built twice, with the old and with the new
//! addresses.

use crate::alter::{Alterations, altered, count, holds, one, run};
use crate::bytes_of;
use longwire_testbed::support::frames::{
    DESTINATION4, Ipv4, PLAIN4, SOURCE4, SOURCE6, ethernet, header_holds, ipv6, remainder,
    transport,
};
use longwire_testbed::support::rows;

const FORWARD: &str = "map=10.0.0.0/8=11.0.0.0/8 map=192.0.2.0/24=198.51.100.0/24 \
    map=224.1.0.0/16=225.2.0.0/16 map=2001:db8::/32=2001:db9::/32 \
    map=ff05::1:0/112=ff05::2:0/112";

const BACK: &str = "map=11.0.0.0/8=10.0.0.0/8 map=198.51.100.0/24=192.0.2.0/24 \
    map=225.2.0.0/16=224.1.0.0/16 map=2001:db9::/32=2001:db8::/32 \
    map=ff05::2:0/112=ff05::1:0/112";

/// A row of `scapy.txt`: kind, name, frame before, frame after.
type Row = (&'static str, &'static str, Vec<u8>, Vec<u8>);

fn scapy() -> impl Iterator<Item = Row> {
    let row = |[kind, name, before, after]: [&'static str; 4]| {
        (kind, name, bytes_of(before), bytes_of(after))
    };
    rows(include_str!("scapy.txt")).map(row)
}

fn unaltered(alterations: &Alterations) -> Vec<(&'static str, u64)> {
    let counts = alterations.counts().into_iter().filter(|(_, n)| *n > 0);
    let reason = |(name, n): (&'static str, u64)| Some((name.strip_prefix("unaltered_")?, n));
    counts.filter_map(reason).collect()
}

#[test]
fn addresses_are_rewritten_as_scapy_would() {
    for (kind, name, before, after) in scapy() {
        let inner = if kind == "tunnel" { " inner" } else { "" };
        for (maps, before, after) in [(FORWARD, &before, &after), (BACK, &after, &before)] {
            let (taken, alterations) = one(&format!("{maps}{inner}"), before, before.len());
            assert_eq!(taken, *after, "{name}");
            assert_eq!(unaltered(&alterations), [], "{name}");
            assert_eq!(alterations.note(), None);
        }
    }
}

/// Valid checksums stay valid; recomputing them over wrong bytes would break them.
#[test]
fn valid_checksums_are_not_repaired() {
    for (_, name, before, _) in scapy() {
        let (taken, alterations) = one("fix-checksums inner", &before, before.len());
        assert_eq!(taken, before, "{name}");
        for counter in ["checksums_fixed", "checksums_unknown", "lengths_fixed"] {
            assert_eq!(count(&alterations, counter), 0, "{name}: {counter}");
        }
    }
}

/// A mobile node's checksum covers its home address, regardless of the option's position (RFC 6275,
/// section 11.3.1), and stays valid when both addresses change.
#[test]
fn checksums_cover_the_home_address() {
    const HOME: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    // Before the option: nothing, one byte of padding, several bytes, or another option.
    let padded: [&[u8]; 5] = [&[], &[0; 4], &[1, 2, 0, 0], &[0x3e, 2, 9, 9], &[0, 1, 1, 0]];
    for before in padded {
        let padding = [1, 2, 0, 0];
        let after = if before.is_empty() { &padding[..] } else { &[] };
        let header = [&[0, 2], before, &[0xc9, 16], &HOME, after].concat();
        let segment = transport(6, 17, (40_000, 53), 0, b"at home?");
        let hop_by_hop: (u8, &[u8]) = (0, &[0, 0, 1, 4, 0, 0, 0, 0]);
        let packet = ipv6(0, &[hop_by_hop, (60, &header)], 17, &segment);
        let right = |frame: &[u8], home: &[u8]| {
            let pseudo = [home, &frame[38..54], &[0, 17, 0, 0, 0, segment.len() as u8]].concat();
            remainder(&[&pseudo, &frame[frame.len() - segment.len()..]]) == 0
        };
        let frame = typed(0x86dd, &packet);
        assert!(!right(&frame, &HOME), "the care-of address is summed");
        let fixed = altered("fix-checksums", &frame);
        assert!(right(&fixed, &HOME), "{before:x?}");
        let after = altered(FORWARD, &fixed);
        let mut home = HOME;
        home[3] = 0xb9;
        assert!(right(&after, &home), "{before:x?}");
        assert_eq!(after[22..26], [0x20, 1, 0xd, 0xb9]);
    }
}

/// Returns the offset of the innermost IP header, found by its source address.
fn innermost(frame: &[u8]) -> Option<(usize, bool)> {
    let four = |place: usize, source: [u8; 4]| {
        (frame[place..].starts_with(&source) && frame[place - 12] >> 4 == 4)
            .then(|| (place - 12, false))
    };
    let six = |place: usize| {
        let prefix = frame[place..].starts_with(&[0x20, 1, 0xd, 0xb8]);
        (prefix && frame[place - 8] >> 4 == 6).then(|| (place - 8, true))
    };
    (26..frame.len()).rev().find_map(|place| {
        four(place, SOURCE4)
            .or_else(|| four(place, [10, 9, 9, 9]))
            .or_else(|| six(place))
    })
}

#[test]
fn invalid_checksums_are_repaired_inside_tunnels() {
    let mut repaired = 0;
    for (kind, name, before, _) in scapy() {
        let wanted = match kind {
            "tunnel" => "fix-checksums inner",
            "link" if name != "ipcp" && name != "rarp" => "fix-checksums",
            _ => continue,
        };
        let (ip_at, is_v6) = innermost(&before).expect(name);
        let (transport_at, protocol) = if is_v6 {
            (ip_at + 40, before[ip_at + 6])
        } else {
            (ip_at + 20, before[ip_at + 9])
        };
        let mut broken = before.clone();
        broken[transport_at + if protocol == 6 { 16 } else { 6 }] ^= 0x5a;
        if !is_v6 {
            broken[ip_at + 10] ^= 0x5a;
        }
        let (taken, alterations) = one(wanted, &broken, broken.len());
        assert_eq!(taken, before, "{name}");
        assert_eq!(count(&alterations, "checksums_fixed"), 1, "{name}");
        repaired += 1;
    }
    assert!(repaired > 25, "{repaired} rows");
}

/// After anonymising all addresses, no byte of an original address remains.
#[test]
fn no_address_escapes_anonymisation() {
    let known: [&[u8]; 6] = [
        &SOURCE4,
        &DESTINATION4,
        &[10, 9, 9, 9],
        &[224, 1, 129, 7],
        &SOURCE6[..4],
        &[0, 0, 0, 0, 0, 1, 0, 3],
    ];
    for (_, name, before, _) in scapy() {
        let frame = altered("anonymize=,plain inner", &before);
        for address in known {
            let found = frame.windows(address.len()).any(|bytes| bytes == address);
            assert!(!found, "{name}: {address:?} in {frame:x?}");
        }
    }
}

/// Without `inner`, a tunnel's inner packet stays unchanged and is counted; if addresses are
/// anonymised, the frame is dropped.
#[test]
fn tunnels_are_unchanged_and_counted() {
    for (_, name, before, _) in scapy().filter(|row| row.0 == "tunnel") {
        let (taken, alterations) = one(FORWARD, &before, before.len());
        assert_ne!(taken, before, "{name}");
        assert_eq!(unaltered(&alterations), [("tunnel", 1)], "{name}");
        let (inner, is_v6) = innermost(&before).expect(name);
        let len = if is_v6 { 40 } else { 20 };
        assert_eq!(taken[inner..inner + len], before[inner..inner + len]);
        let note = alterations.note().unwrap();
        assert!(note.contains("--inner alters 1 tunnelled packet"), "{note}");
        let (taken, anonymous) = run("anonymize", &before, before.len());
        assert!(taken.is_empty());
        let expected = [("tunnel", 1), ("dropped", 1)];
        assert_eq!(unaltered(&anonymous), expected);
        // DSCP and TTL apply only to the outermost packet, so nothing is counted.
        let (_, marked) = one("dscp=9", &before, before.len());
        assert_eq!(unaltered(&marked), [], "{name}");
    }
}

#[test]
fn class_and_ttl_are_written_after_any_link_header() {
    for (_, name, before, _) in scapy().filter(|row| row.0 == "link") {
        let Some((ip_at, is_v6)) = innermost(&before) else {
            continue;
        };
        let after = altered("ttl=9 dscp=46", &before);
        let (class, ttl) = if is_v6 {
            (after[ip_at] << 4 | after[ip_at + 1] >> 4, after[ip_at + 7])
        } else {
            assert!(header_holds(&after, ip_at), "{name}");
            (after[ip_at + 1], after[ip_at + 8])
        };
        assert_eq!((class, ttl), (46 << 2, 9), "{name}");
    }
}

fn typed(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(&[], ethertype, payload)
}

/// Frames that cannot be altered, each with its reason.
fn exceptions() -> Vec<(&'static str, Vec<u8>)> {
    let packet = PLAIN4.packet(17, &[0, 9, 0, 9, 0, 8, 0, 0]);
    let mut version5 = packet.clone();
    version5[0] = 0x55;
    let udp_to = |port: [u8; 2], payload: &[u8]| {
        let mut segment = vec![0, 9, port[0], port[1], 0, 8 + payload.len() as u8, 0, 0];
        segment.extend(payload);
        typed(0x0800, &PLAIN4.packet(17, &segment))
    };
    let compressed_route = &[&[0, 2, 3, 1, 0, 0, 0, 0][..], &[1; 16]].concat();
    let protocol = |number, payload: &[u8]| typed(0x0800, &PLAIN4.packet(number, payload));
    let mut nested = packet.clone();
    for _ in 0..9 {
        nested = PLAIN4.packet(4, &nested);
    }
    let arp = [&[0, 1, 0x86, 0xdd, 6, 16, 0, 1][..], &[7; 44]].concat();
    let short_arp = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 1];
    let vxlan_gpe = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &typed(0x88e5, &[0; 40])].concat();
    vec![
        ("not_ip", typed(0x88cc, &[2, 7, 4, 10, 1, 2, 3])),
        ("llc", typed(38, &[0x42, 0x42, 3, 0, 0, 0, 0])),
        ("llc", typed(38, &[0xaa, 0xaa, 3, 0, 0, 0xc, 0x20, 0])),
        ("control", typed(0x8863, &[0x11, 9, 0, 0, 0, 0])),
        (
            "control",
            typed(0x8864, &[0x11, 0, 0, 1, 0, 6, 0xc0, 0x21, 9, 1, 0, 4]),
        ),
        ("encrypted", typed(0x88e5, &[0; 40])),
        ("truncated", typed(0x0800, &packet[..16])),
        ("truncated", typed(0x8847, &[0, 1, 0])),
        ("truncated", typed(0x0806, &short_arp)),
        ("malformed", typed(0x0800, &version5)),
        ("malformed", typed(0x0800, &nested)),
        ("unknown", typed(0x0806, &arp)),
        ("unknown", protocol(115, &[0, 0, 0, 1, 0x45, 0, 0, 20])),
        ("unknown", protocol(47, &[0x40, 0, 8, 0, 0, 0, 0, 0])),
        (
            "unknown",
            typed(0x86dd, &ipv6(0, &[(43, compressed_route)], 59, &[])),
        ),
        ("unknown", udp_to([0x0d, 0xd8], &[0x60; 40])),
        ("encrypted", udp_to([0x12, 0xb5], &vxlan_gpe)),
    ]
}

/// Each reason is counted; the frame is sent unless addresses are anonymised.
#[test]
fn unaltered_frames_are_counted_by_reason() {
    for (reason, frame) in exceptions() {
        let all = |text: &str| {
            let text = format!("truncated=keep inner {text}");
            let (sent, alterations) = run(&text, &frame, frame.len());
            (sent.len(), unaltered(&alterations))
        };
        let map = all("map=10.0.0.0/8=11.0.0.0/8");
        assert_eq!(map, (1, vec![(reason, 1)]), "{frame:x?}");
        let dropped = vec![(reason, 1), ("dropped", 1)];
        assert_eq!(all("anonymize"), (0, dropped), "{frame:x?}");
        let sent = all("anonymize unaltered=send");
        assert_eq!(sent, (1, vec![(reason, 1)]), "{frame:x?}");
        // Rewriting only MAC addresses needs no packet.
        let macs = all("src-mac=02:00:00:00:00:0a");
        assert_eq!(macs, (1, vec![]), "{frame:x?}");
    }
}

/// A MAC address changes with its IP group only if it was derived from it before.
#[test]
fn ethernet_groups_follow_ip_groups() {
    let destination = [224, 1, 129, 7];
    let group = Ipv4 {
        destination,
        ..PLAIN4
    };
    let packet = group.packet(17, &[0, 9, 0, 9, 0, 8, 0, 0]);
    let to = |text: &str, mac: [u8; 6]| {
        let mut frame = typed(0x0800, &packet);
        frame[..6].copy_from_slice(&mac);
        altered(text, &frame)[..6].to_vec()
    };
    let own = [1, 0, 0x5e, 1, 129, 7];
    let group = "map=224.1.0.0/16=225.130.0.0/16";
    assert_eq!(to(group, own), [1, 0, 0x5e, 2, 129, 7]);
    assert_eq!(to(group, [0xff; 6]), [0xff; 6]);
    assert_eq!(to("map=224.0.0.0/8=10.0.0.0/8", own), own);
    assert_eq!(to(&format!("{group} keep-groups"), own), own);
    let given = format!("{group} dst-mac=02:00:00:00:00:09");
    assert_eq!(to(&given, own), [2, 0, 0, 0, 0, 9]);

    // A solicited-node group contains the end of an address, and so does its MAC address.
    let mut packet = ipv6(0, &[], 17, &transport(6, 17, (1, 2), 0, b"who"));
    packet[24..40].copy_from_slice(&bytes_of("ff0200000000000000000001ffaabbcc"));
    let mut frame = typed(0x86dd, &packet);
    frame[..6].copy_from_slice(&[0x33, 0x33, 0xff, 0xaa, 0xbb, 0xcc]);
    longwire_packet::repair_checksums(&mut frame);
    let after = altered("anonymize", &frame);
    assert!(holds(&after));
    assert_eq!(after[38..51], frame[38..51]);
    assert_ne!(after[51..54], frame[51..54]);
    assert_eq!(after[3..6], after[51..54]);
    assert_eq!(after[..3], [0x33, 0x33, 0xff]);
}
