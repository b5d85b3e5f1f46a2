//! Several rounds through a trace: addresses, TCP and RTP.

use crate::alter::{About, Alterations, all_of, altered_in, count, holds, options, udp};
use longwire_testbed::support::frames::{PLAIN4, ethernet, transport};
use longwire_units::Nanos;

#[test]
fn addresses_advance_with_the_round() {
    for (wanted, round, source, destination) in [
        ("1", 0, [10, 1, 2, 3], [192, 0, 2, 77]),
        ("1", 1, [10, 1, 2, 4], [192, 0, 2, 78]),
        ("256", 2, [10, 1, 4, 3], [192, 0, 4, 77]),
        // Shifts wrap around within the last 24 bits, or within the network.
        ("16777215", 1, [10, 1, 2, 2], [192, 0, 2, 76]),
        ("1,10.1.2.0/30", 1, [10, 1, 2, 0], [192, 0, 2, 77]),
        ("1,10.0.0.0/8", 1 << 40, [10, 1, 2, 3], [192, 0, 2, 77]),
        ("65536,10.0.0.0/8", 3, [10, 4, 2, 3], [192, 0, 2, 77]),
    ] {
        let mut alterations = Alterations::new(options(&format!("loop-addresses={wanted}")));
        let after = in_round(&mut alterations, &udp((1, 2), b"again"), round);
        assert_eq!(after[26..30], source, "{wanted} {round}");
        assert_eq!(after[30..34], destination, "{wanted} {round}");
        assert!(holds(&after));
    }
}

fn in_round(alterations: &mut Alterations, frame: &[u8], round: u64) -> Vec<u8> {
    altered_in(alterations, frame, frame.len(), round).remove(0)
}

/// A segment from either side, with timestamps and selective acknowledgements: NOP NOP TS, then NOP
/// SACK, so that SACK edges are unaligned.
fn segment(from_client: bool, sequence: u32, acknowledgement: u32) -> Vec<u8> {
    let ports = if from_client {
        (40_000, 80)
    } else {
        (80, 40_000)
    };
    let mut segment = transport(4, 6, ports, 0x10, b"hello");
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledgement.to_be_bytes());
    let mut options = vec![1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0, 1, 5, 10];
    options.extend((acknowledgement + 100).to_be_bytes());
    options.extend((acknowledgement + 200).to_be_bytes());
    options.push(0);
    segment[12] = (((20 + options.len()) / 4) << 4) as u8;
    segment.splice(20..20, options);
    let mut frame = ethernet(&[], 0x0800, &PLAIN4.packet(6, &segment));
    if !from_client {
        let source: [u8; 4] = frame[26..30].try_into().unwrap();
        frame.copy_within(30..34, 26);
        frame[30..34].copy_from_slice(&source);
    }
    longwire_packet::repair_checksums(&mut frame);
    frame
}

fn number(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

/// In every round, each side acknowledges the numbers sent by the other; numbers differ between
/// rounds.
#[test]
fn sequence_numbers_differ_between_rounds() {
    let mut alterations = Alterations::new(options("loop-renumber"));
    let there = segment(true, 1_000, 9_000);
    let back = segment(false, 9_000, 1_005);
    let mut seen = Vec::new();
    for round in 0..5 {
        let client = in_round(&mut alterations, &there, round);
        let server = in_round(&mut alterations, &back, round);
        assert!(holds(&client) && holds(&server), "{round}");
        let sent = number(&client, 38);
        assert_eq!(number(&server, 42), sent.wrapping_add(5), "{round}");
        assert_eq!(number(&client, 42), number(&server, 38), "{round}");
        assert_eq!(number(&server, 69), number(&server, 42).wrapping_add(100));
        assert_eq!(number(&server, 73), number(&server, 42).wrapping_add(200));
        // Each round takes 40 ms.
        assert_eq!(number(&client, 58), 0x100 + 40 * round as u32);
        assert_eq!(number(&client, 62), 0x200 + 40 * round as u32);
        assert!(!seen.contains(&sent));
        seen.push(sent);
        alterations.next_round();
    }
    assert_eq!(seen[0], 1_000, "the first round is as captured");
}

fn rtp(sequence: u16, time: u32, source: u32) -> Vec<u8> {
    let (sequence, time, source) = (
        sequence.to_be_bytes(),
        time.to_be_bytes(),
        source.to_be_bytes(),
    );
    let payload = [&[0x80, 0], &sequence[..], &time, &source, &[0x55; 160]].concat();
    udp((17_000, 18_000), &payload)
}

/// Ten packets at intervals of 20 ms, with wrap-around; the next round continues where this one
/// ends.
#[test]
fn rtp_streams_continue() {
    let mut alterations = Alterations::new(options("loop-renumber"));
    let first_sequence = 65_530u16;
    let first_time = u32::MAX - 500;
    for round in 0..4u32 {
        for n in 0..10u32 {
            let sequence = first_sequence.wrapping_add(n as u16);
            let frame = rtp(sequence, first_time.wrapping_add(160 * n), 77);
            let after = in_round(&mut alterations, &frame, round.into());
            let position = 10 * round + n;
            let sequence = u16::from_be_bytes([after[44], after[45]]);
            assert_eq!(sequence, first_sequence.wrapping_add(position as u16));
            assert_eq!(number(&after, 46), first_time.wrapping_add(160 * position));
            assert_eq!(number(&after, 50), 77);
            assert!(holds(&after));
        }
        alterations.next_round();
    }
}

/// Datagrams are not RTP if only one or two resemble it, or if their sequence numbers jump.
#[test]
fn datagrams_without_rtp_are_unchanged() {
    let mut alterations = Alterations::new(options("loop-renumber"));
    let unordered = (0..20u16).map(|n| rtp(n.wrapping_mul(7_919), n.into(), 5));
    let to_dns = udp((17_000, 53), &rtp(1, 1, 8)[42..]);
    let frames = unordered.chain([rtp(1, 1, 6), rtp(2, 2, 6), to_dns]);
    let frames: Vec<Vec<u8>> = frames.collect();
    for round in 0..2 {
        for frame in &frames {
            assert_eq!(in_round(&mut alterations, frame, round), *frame);
        }
        alterations.next_round();
    }
    // Streams beyond the maximum are only counted.
    for source in 0..5_000 {
        all_of(&mut alterations, &rtp(1, 1, source));
    }
    assert!(count(&alterations, "rtp_not_renumbered") > 800);
}

/// Time advances with every round, even if the rounds' lengths differ.
#[test]
fn rounds_add_up() {
    let mut alterations = Alterations::new(options("loop-renumber"));
    let frame = segment(true, 1, 2);
    for (round, millis, expected) in [(0, 100, 0), (1, 250, 100), (2, 10, 350), (3, 0, 360)] {
        let into_round = Nanos::from_millis(millis);
        let about = About {
            round,
            into_round,
            number: 0,
        };
        let mut stamp = 0;
        let take = &mut |bytes: &[u8], _| stamp = number(bytes, 58);
        alterations.apply(&frame, frame.len() as u32, about, take);
        assert_eq!(stamp, 0x100 + expected);
        alterations.next_round();
    }
}
