//! Nested addresses: ARP, neighbour discovery, and packets quoted by ICMP errors.

use crate::alter::{altered, holds, udp};
use longwire_testbed::support::frames::{PLAIN4, SOURCE4, ethernet, ipv6, transport};

const WANTED: &str = "map=10.0.0.0/8=11.0.0.0/8 map=192.0.2.0/24=198.51.100.0/24 map=2001:db8::/32=2001:db9::/32 map-port=53=5353 src-mac=02:aa:aa:aa:aa:aa map-mac=02:00:00:00:00:02=02:bb:bb:bb:bb:bb";

fn carrying(kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(&[], kind, packet);
    longwire_packet::repair_checksums(&mut frame);
    frame
}

#[test]
fn arp_is_rewritten() {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 2];
    packet.extend([2, 0, 0, 0, 0, 1, 10, 1, 2, 3]);
    packet.extend([2, 0, 0, 0, 0, 2, 192, 0, 2, 77]);
    let after = altered(WANTED, &ethernet(&[4], 0x0806, &packet));
    let [a, b] = [
        [2, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa],
        [2, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb],
    ];
    assert_eq!(after[..12], [b, a].concat());
    assert_eq!(after[26..36], [&a[..], &[11, 1, 2, 3]].concat());
    assert_eq!(after[36..46], [&b[..], &[198, 51, 100, 77]].concat());
}

/// ICMP errors quote packets as altered.
#[test]
fn quoted_packets_match_the_altered_ones() {
    let sent = udp((40_000, 53), &[7; 40]);
    let sent_after = altered(WANTED, &sent);
    for (kind, quoted_len) in [(3, 28), (11, 28), (5, 40), (12, 60), (4, 29), (8, 68)] {
        let message = [&[kind, 1, 0, 0, 10, 9, 9, 9], &sent[14..14 + quoted_len]].concat();
        let after = altered(WANTED, &carrying(0x0800, &PLAIN4.packet(1, &message)));
        assert!(holds(&after), "{kind}");
        // An echo request quotes nothing, even if its contents look like a packet.
        let expected = if kind == 8 { &sent } else { &sent_after };
        assert_eq!(after[42..], expected[14..14 + quoted_len], "{kind}");
        let gateway = [if kind == 5 { 11 } else { 10 }, 9, 9, 9];
        assert_eq!(after[38..42], gateway, "{kind}");
    }
}

#[test]
fn ipv6_errors_quote_the_altered_packet() {
    let segment = transport(6, 17, (40_000, 53), 0, &[7; 40]);
    let sent = ethernet(&[], 0x86dd, &ipv6(0, &[], 17, &segment));
    let sent_after = altered(WANTED, &sent);
    for kind in 1..=4 {
        let message = [&[kind, 0, 0, 0, 0, 0, 5, 0], &sent[14..]].concat();
        let after = altered(WANTED, &carrying(0x86dd, &ipv6(0, &[], 58, &message)));
        assert!(holds(&after), "{kind}");
        assert_eq!(after[62..], sent_after[14..], "{kind}");
    }
}

#[test]
fn neighbour_discovery_is_rewritten() {
    // Type, bytes before the options, and number of targets.
    for (kind, before, targets) in [
        (133, 8, 0),
        (134, 16, 0),
        (135, 24, 1),
        (136, 24, 1),
        (137, 40, 2),
    ] {
        let mut message = vec![0; before];
        message[0] = kind;
        for target in message[8..].chunks_mut(16).take(targets) {
            target.copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        }
        // A 32-byte prefix option, then the link-layer address.
        message.extend([3, 4]);
        message.extend([0; 30]);
        message.extend([if kind == 136 { 2 } else { 1 }, 1, 2, 0, 0, 0, 0, 1]);
        let after = altered(WANTED, &carrying(0x86dd, &ipv6(0, &[], 58, &message)));
        assert!(holds(&after), "{kind}");
        for target in after[62..].chunks(16).take(targets) {
            assert_eq!(target[..4], [0x20, 1, 0xd, 0xb9], "{kind}");
        }
        let station = [2, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa];
        assert!(after.ends_with(&station), "{kind}");
    }
}

/// If groups are kept, multicast addresses stay multicast.
#[test]
fn keep_groups_preserves_group_addresses() {
    let mut frame = udp((1, 2), b"many");
    frame[..6].fill(0xff);
    frame[30..34].copy_from_slice(&[224, 1, 2, 3]);
    longwire_packet::repair_checksums(&mut frame);
    let wanted = "dst-mac=02:00:00:00:00:09 map=0.0.0.0/0=12.0.0.0/8";
    let kept = altered(&format!("{wanted} keep-groups"), &frame);
    assert_eq!((&kept[..6], kept[26]), (&[0xff; 6][..], 12));
    assert_eq!(kept[30..34], [224, 1, 2, 3]);
    let all = altered(wanted, &frame);
    assert_eq!((all[5], all[26], all[30]), (9, 12, 12));
    assert_eq!(frame[26..30], SOURCE4);
    assert!(holds(&kept) && holds(&all));
}
