//! VLAN tags, and frames that exceed the MTU.

use crate::alter::{Alterations, altered, count, holds, run, sctp, udp};
use longwire_packet::alter::VlanChange;
use longwire_testbed::support::frames::{Ipv4, PLAIN4, ethernet, ipv6, transport};

fn tagged(changes: &[&str], frame: &[u8]) -> Vec<u8> {
    altered(&format!("vlan={}", changes.join(" vlan=")), frame)
}

#[test]
fn tags_are_added_removed_and_changed() {
    let frame = |vlans: &[u16]| ethernet(vlans, 0x0800, &PLAIN4.packet(17, &[7; 30]));
    for (changes, before, after) in [
        (&["push:7"][..], &[][..], &[7][..]),
        (&["push:7", "push:100,type=0x88a8"], &[], &[100, 7]),
        (&["pop"], &[7], &[]),
        (&["pop"], &[100, 7], &[7]),
        (&["pop", "pop", "pop"], &[100, 7], &[]),
        (&["map:7=8"], &[7, 7], &[8, 8]),
        (&["map:6=8"], &[7], &[7]),
        (&["pop", "push:8"], &[7], &[8]),
    ] {
        assert_eq!(tagged(changes, &frame(before)), frame(after), "{changes:?}");
    }
    let marked = tagged(&["push:9,pcp=5,dei=1"], &frame(&[]));
    assert_eq!(marked[12..16], [0x81, 0, 0xb0, 9]);
    assert_eq!(tagged(&["pcp:6"], &frame(&[7]))[14..16], [0xc0, 7]);
    assert_eq!(tagged(&["push:8"], &[1; 9]), [1; 9]);
}

#[test]
fn refused_tags_get_a_remedy() {
    for (text, message) in [
        ("push:4096", "'4096' is not a VLAN, 0 to 4095"),
        ("push:1,pcp=8", "'8' is not 0 to 7"),
        (
            "push:1,type=0x0800",
            "'0x0800' is not one of 0x8100, 0x88a8, 0x9100",
        ),
        (
            "push:1,colour=red",
            "'colour=red' is not one of pcp=0..7, dei=0|1, type=0x88a8",
        ),
        ("map:5", "'5' is not OLD=NEW"),
        ("drop", "'drop' is not push:VLAN"),
    ] {
        let error = text.parse::<VlanChange>().unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

fn fitted(mtu: u32, action: &str, frame: &[u8]) -> (Vec<Vec<u8>>, Alterations) {
    run(
        &format!("mtu={mtu} mtu-action={action}"),
        frame,
        frame.len(),
    )
}

#[test]
fn long_frames_are_fragmented() {
    let frame = udp((1, 2), &[7; 1_400]);
    let (pieces, alterations) = fitted(576, "fragment", &frame);
    assert_eq!(pieces.len(), 3);
    let mut all = pieces.iter();
    assert!(all.all(|piece| piece.len() <= 14 + 576 && holds(piece)));
    assert_eq!(count(&alterations, "mtu_fragmented"), 1);
    let (fits, _) = fitted(1_428, "fragment", &frame);
    assert_eq!(fits, [frame]);
    // Dropped: IPv4 with Don't Fragment, IPv6, which routers do not fragment, and a frame without
    // IP.
    let fragment = 0x4000;
    let kept_whole = Ipv4 { fragment, ..PLAIN4 };
    let segment = transport(6, 17, (1, 2), 0, &[7; 1_400]);
    for frame in [
        ethernet(&[], 0x0800, &kept_whole.packet(17, &[0; 900])),
        ethernet(&[], 0x86dd, &ipv6(0, &[], 17, &segment)),
        ethernet(&[], 0x88b5, &[0; 900]),
    ] {
        let (pieces, alterations) = fitted(576, "fragment", &frame);
        assert!(pieces.is_empty());
        assert_eq!(count(&alterations, "mtu_dropped"), 1);
    }
}

#[test]
fn long_frames_are_truncated_or_dropped() {
    let segment6 = transport(6, 17, (1, 2), 0, &[7; 1_400]);
    let tcp6 = transport(6, 6, (1, 2), 0x18, &[7; 1_400]);
    for frame in [
        udp((1, 2), &[7; 1_400]),
        ethernet(&[5], 0x86dd, &ipv6(0, &[], 17, &segment6)),
        ethernet(&[5], 0x86dd, &ipv6(0, &[], 6, &tcp6)),
        ethernet(&[], 0x88b5, &[0; 900]),
        sctp(900),
    ] {
        let header = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
        let (taken, alterations) = fitted(576, "truncate", &frame);
        assert_eq!(taken[0].len(), header + 576);
        assert!(holds(&taken[0]));
        assert_eq!(count(&alterations, "mtu_truncated"), 1);
        if frame[12..14] == [8, 0] {
            assert_eq!(taken[0][16..18], 576u16.to_be_bytes());
        }
        let (taken, alterations) = fitted(576, "drop", &frame);
        assert!(taken.is_empty());
        assert_eq!(count(&alterations, "mtu_dropped"), 1);
    }
    let (taken, _) = fitted(576, "truncate", &udp((1, 2), &[7; 1_400]));
    assert_eq!(taken[0][38..40], 556u16.to_be_bytes());
}
