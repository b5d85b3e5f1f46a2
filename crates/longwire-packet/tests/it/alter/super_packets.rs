//! Super-packets, whose IP header lacks a length, and length fields of truncated frames.

use crate::alter::{Alterations, all_of, altered, altered_in, count, holds, one, options, run};
use longwire_packet::repair_checksums;
use longwire_testbed::support::frames::{
    DESTINATION6, PLAIN4, SOURCE6, ethernet, header_holds, ipv6, remainder, transport,
};

/// Returns a whole frame of this IP version, with valid lengths and checksums.
fn frame(version: u8, protocol: u8, len: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..len).map(|n| (n * 13 % 251) as u8).collect();
    let segment = transport(version, protocol, (4_000, 80), 0x18, &payload);
    match version {
        4 => ethernet(&[7], 0x0800, &PLAIN4.packet(protocol, &segment)),
        _ => ethernet(&[7], 0x86dd, &ipv6(0, &[], protocol, &segment)),
    }
}

/// Returns the frame as handed to a segmenting interface: without a length, and with a checksum
/// that excludes the payload.
fn handed_over(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let is_v4 = frame[16..18] == [8, 0];
    let (len_at, transport_at) = if is_v4 { (20, 38) } else { (22, 58) };
    frame[len_at..len_at + 2].fill(0);
    let protocol = frame[if is_v4 { 27 } else { 24 }];
    if protocol == 17 {
        frame[transport_at + 4..transport_at + 6].fill(0);
    }
    let checksum_at = transport_at + if protocol == 6 { 16 } else { 6 };
    frame[checksum_at..checksum_at + 2].copy_from_slice(&[0xab, 0xcd]);
    if is_v4 {
        frame[28..30].fill(0);
    }
    frame
}

const CASES: [(u8, u8); 4] = [(4, 6), (4, 17), (6, 6), (6, 17)];

#[test]
fn lengths_and_checksums_are_completed() {
    for (version, protocol) in CASES {
        let whole = frame(version, protocol, 5_001);
        let (after, alterations) = one("fix-checksums", &handed_over(&whole), whole.len());
        assert_eq!(after, whole, "{version} {protocol}");
        let counts = ["lengths_fixed", "checksums_fixed", "checksums_unknown"];
        assert_eq!(counts.map(|name| count(&alterations, name)), [1, 1, 0]);
        let (_, alterations) = one("fix-checksums", &whole, whole.len());
        assert_eq!(count(&alterations, "lengths_fixed"), 0);
    }
}

/// Beyond 64 KiB, the length does not fit in any header; the checksum covers all bytes.
#[test]
fn packets_beyond_64_kib_keep_a_zero_length() {
    let payload = vec![0x61; 90_001];
    let mut segment = transport(6, 6, (4_000, 80), 0x18, &payload);
    segment[16..18].copy_from_slice(&[1, 2]);
    let mut packet = ipv6(0, &[], 6, &segment);
    packet[4..6].fill(0);
    let long = ethernet(&[], 0x86dd, &packet);
    let (after, alterations) = one("fix-checksums", &long, long.len());
    assert_eq!(after[18..20], [0, 0]);
    assert_eq!(count(&alterations, "checksums_fixed"), 1);
    let mut pseudo = [SOURCE6, DESTINATION6].concat();
    pseudo.extend([0, 6]);
    pseudo.extend((segment.len() as u32).to_be_bytes());
    assert_eq!(remainder(&[&pseudo, &after[54..]]), 0);
}

/// A UDP datagram whose length contradicts that of its packet has no valid checksum and is counted.
#[test]
fn contradictory_checksums_are_counted() {
    let mut contradictory = frame(4, 17, 40);
    contradictory[42..44].copy_from_slice(&[0, 3]);
    let (after, alterations) = one("fix-checksums", &contradictory, contradictory.len());
    assert_eq!(after, contradictory);
    assert_eq!(count(&alterations, "checksums_unknown"), 1);
}

#[test]
fn truncated_super_packets_get_their_length() {
    for version in [4, 6] {
        let whole = frame(version, 6, 5_000);
        let cut = &handed_over(&whole)[..200];
        let (after, _) = one("", cut, whole.len());
        let len_at = if version == 4 { 20 } else { 22 };
        assert_eq!(after.len(), whole.len());
        assert_eq!(after[len_at..len_at + 2], whole[len_at..len_at + 2]);
        assert!(holds(&after), "{version}");
    }
}

#[test]
fn shortened_super_packets_have_valid_lengths_and_checksums() {
    const CUT_OFF: &str = "mtu=1400 mtu-action=truncate";
    for (version, protocol) in CASES {
        let whole = frame(version, protocol, 5_000);
        let expected = altered(CUT_OFF, &whole);
        assert!(holds(&expected));
        let after = altered(CUT_OFF, &handed_over(&whole));
        assert_eq!(after, expected, "{version} {protocol}");
        // A truncated packet gets the length that it has on the wire.
        let kept = format!("{CUT_OFF} truncated=keep");
        let (after, _) = one(&kept, &handed_over(&whole)[..200], whole.len());
        let len_at = if version == 4 { 20 } else { 22 };
        assert_eq!(after[len_at..len_at + 2], expected[len_at..len_at + 2]);
    }
}

/// The segmenter splits packets that must not be fragmented.
#[test]
fn packets_that_must_stay_whole_go_to_the_segmenter() {
    fn halves(frame: &mut [u8], mtu: usize, _: &mut Vec<u8>, take: &mut dyn FnMut(&[u8])) -> bool {
        assert_eq!(mtu, 1_400);
        let is_tcp = frame[27] == 6 || frame[24] == 6;
        if is_tcp {
            let (first, second) = frame.split_at(frame.len() / 2);
            take(first);
            take(second);
        }
        is_tcp
    }
    let mut dont_fragment = frame(4, 6, 5_000);
    dont_fragment[24] = 0x40;
    repair_checksums(&mut dont_fragment);
    let mut padded = frame(6, 6, 5_000);
    padded.extend([0; 9]);
    for (frame, segmented, fragmented) in [
        (handed_over(&frame(4, 6, 5_000)), 1, 0),
        (handed_over(&frame(6, 6, 5_000)), 1, 0),
        (padded, 1, 0),
        (dont_fragment, 1, 0),
        (frame(4, 6, 5_000), 0, 1),
        (frame(6, 17, 5_000), 0, 0),
    ] {
        let mut alterations = Alterations::new(options("mtu=1400"));
        alterations.segment_with(halves);
        let taken = all_of(&mut alterations, &frame);
        let counts = ["mtu_segmented", "mtu_fragmented", "mtu_dropped"];
        let expected = [segmented, fragmented, 1 - segmented - fragmented];
        assert_eq!(counts.map(|name| count(&alterations, name)), expected);
        if segmented == 1 {
            // The segmenter gets the whole packet, with its length field set and no padding.
            let whole = taken.concat();
            assert!(whole.len() <= 18 + 40 + 20 + 5_000);
            let len_at = if whole[16..18] == [8, 0] { 20 } else { 22 };
            assert_ne!(whole[len_at..len_at + 2], [0, 0]);
        }
        // A truncated packet is not segmented.
        let mut kept = Alterations::new(options("mtu=1400 truncated=keep"));
        kept.segment_with(halves);
        altered_in(&mut kept, &frame[..200], frame.len(), 0);
        assert_eq!(count(&kept, "mtu_dropped"), 1);
    }
}

/// Length fields of LLC and PPPoE are reduced by truncation.
#[test]
fn link_lengths_fit_a_shorter_frame() {
    let packet = PLAIN4.packet(17, &transport(4, 17, (1, 2), 0, &[7; 900]));
    let mut llc = ethernet(&[], 8 + 928, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    llc.extend(&packet);
    let mut pppoe = ethernet(&[], 0x8864, &[0x11, 0, 0, 9, 3, 0xa2, 0, 0x21]);
    pppoe.extend(&packet);
    for (frame, len_at, ip_at) in [(llc, 12, 22), (pppoe, 18, 22)] {
        let fit = |how: &str| run(&format!("mtu=576 mtu-action={how}"), &frame, frame.len()).0;
        let pieces = [fit("truncate"), fit("fragment")];
        assert_eq!((pieces[0].len(), pieces[1].len()), (1, 2));
        for piece in pieces.concat() {
            let said = |at: usize| usize::from(u16::from_be_bytes([piece[at], piece[at + 1]]));
            assert!(piece.len() <= 14 + 576);
            assert_eq!(said(len_at), piece.len() - len_at - 2);
            assert_eq!(said(ip_at + 2), piece.len() - ip_at);
            assert!(header_holds(&piece, ip_at));
        }
    }
}
