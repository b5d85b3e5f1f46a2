//! Checksums updated incrementally, which must equal recomputed ones.

use longwire_packet::fragment::fragment;
use proptest::prelude::*;

use crate::alter::{
    Alterations, all_of, altered, altered_in, count, holds, one, options, sctp, udp,
};
use longwire_testbed::support::frames::{self, Sample, crc32c};

/// One option for each kind of change to checksummed bytes.
const OPTIONS: [&str; 11] = [
    "map=10.0.0.0/8=172.16.0.0/12 map=192.0.2.0/24=0.0.0.0/24",
    "map=2001:db8::/32=fd00:1:2::/48",
    "map-port=443=65535 map-port=udp:40000=0",
    "anonymize",
    "ttl=-7",
    "dscp=1",
    "vlan=push:9,pcp=3,type=0x88a8",
    "loop-renumber",
    "loop-addresses=3",
    "map=src:0.0.0.0/0=203.0.113.0/24",
    "vlan=pop",
];

/// Returns the options selected by `bits`; a tag is popped before another is pushed.
fn chosen(bits: u32) -> String {
    let all = (0..OPTIONS.len()).rev().filter(|bit| bits >> bit & 1 == 1);
    all.map(|bit| OPTIONS[bit]).collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// 600 sets of options, each applied to 11 kinds of frames in two rounds.
    #[test]
    fn valid_checksums_stay_valid(bits in 0u32..1 << 11, round in 0u64..100_000) {
let mut alterations = Alterations::new(options(&chosen(bits)));
for sample in frames::samples() {
for round in [0, round] {
let after = altered_in(&mut alterations, &sample.frame, sample.frame.len(), round);
prop_assert_eq!(after.len(), 1);
let by = after[0].len() as isize - sample.frame.len() as isize;
                let moved = Sample {
                    ip_at: (sample.ip_at as isize + by) as usize,
                    transport_at: (sample.transport_at as isize + by) as usize,
                    frame: after[0].clone(),
                    ..sample
                };
                prop_assert!(moved.holds(&moved.frame), "{}, {:b}", sample.name, bits);
                prop_assert!(holds(&moved.frame), "{}, {:b}", sample.name, bits);
            }
        }
    }

    /// A wrong checksum stays wrong, by the same amount.
    #[test]
    fn invalid_checksums_stay_invalid(bits in 0u32..1 << 10, error in 1u16..0xffff) {
let frame = udp((40_000, 443), &[3; 21]);
        let mut wrong = frame.clone();
        let sum = u16::from_be_bytes([wrong[40], wrong[41]]);
        let bad = sum.wrapping_add(error);
        prop_assume!(bad != 0 && u32::from(bad) % 0xffff != u32::from(sum) % 0xffff);
        wrong[40..42].copy_from_slice(&bad.to_be_bytes());
        prop_assert!(!holds(&wrong));
prop_assert!(!holds(&altered(&chosen(bits & !(1 << 6)), &wrong)));
    }

    /// Fragments altered individually reassemble to the datagram altered as a whole.
    #[test]
    fn fragments_reassemble_to_the_altered_packet(bits in 0u32..1 << 6, len in 200usize..3_000, mtu in 68u32..600) {
        let payload: Vec<u8> = (0..len).map(|n| (n * 7 % 251) as u8).collect();
        let frame = udp((40_000, 443), &payload);
let whole = altered(&chosen(bits), &frame);
let mut alterations = Alterations::new(options(&chosen(bits)));
        let mut datagram = vec![0; whole.len() - 34];
        fragment(&frame, mtu, &mut Vec::new(), |piece| {
            let piece = &all_of(&mut alterations, piece)[0];
            let offset = usize::from(u16::from_be_bytes([piece[20], piece[21]]) & 0x1fff) * 8;
            datagram[offset..offset + piece.len() - 34].copy_from_slice(&piece[34..]);
            assert!(frames::header_holds(piece, 14));
        });
        prop_assert_eq!(datagram, &whole[34..]);
    }
}

#[test]
fn the_checksum_of_sctp_is_recomputed() {
    let frame = sctp(33);
    let check = |frame: &[u8]| {
        let mut packet = frame[34..].to_vec();
        let stored: [u8; 4] = packet[8..12].try_into().unwrap();
        packet[8..12].fill(0);
        assert_eq!(u32::from_le_bytes(stored), crc32c(&packet));
    };
    check(&frame);
    let after = altered("map-port=sctp:5060=5062 map=10.0.0.0/8=11.0.0.0/8", &frame);
    assert_eq!(after[34..38], [0x13, 0xc6, 0x13, 0xc6]);
    assert_eq!(after[26], 11);
    check(&after);
    // The checksum of a truncated datagram is unknown.
    let wanted = "truncated=keep map-port=5060=5062";
    let (_, alterations) = one(wanted, &frame[..60], frame.len());
    assert_eq!(count(&alterations, "checksums_unknown"), 1);
}

/// A datagram without a checksum does not get one, and no checksum becomes zero.
#[test]
fn a_zero_checksum_of_udp_means_none() {
    let mut frame = udp((1, 2), &[0; 4]);
    frame[40..42].fill(0);
    let after = altered("map-port=2=3", &frame);
    assert_eq!(after[36..38], [0, 3]);
    assert_eq!(after[40..42], [0, 0]);
    let mut zeros = 0;
    for first in 0..=0xffff_u16 {
        let mut frame = udp((1, 2), &first.to_be_bytes());
        if first.is_multiple_of(257) || u16::from_be_bytes([frame[40], frame[41]]) <= 2 {
            frame = altered("map-port=2=3", &frame);
            assert_ne!(frame[40..42], [0, 0]);
            zeros += u32::from(frame[40..42] == [0xff, 0xff]);
            assert!(holds(&frame));
        }
    }
    assert!(zeros > 0, "no checksum was zero");
}

/// The inverse maps restore the frame.
#[test]
fn maps_have_inverses() {
    const THERE: &str = "map=10.0.0.0/8=11.0.0.0/8 map=192.0.2.0/25=198.51.100.128/25 map=2001:db8::/32=2001:db9::/32 map-port=400-499=1400-1499 map-mac=02:00:00:00:00:01=04:05:06:07:08:09 vlan=push:77 vlan=map:7=8";
    const BACK: &str = "map=11.0.0.0/8=10.0.0.0/8 map=198.51.100.128/25=192.0.2.0/25 map=2001:db9::/32=2001:db8::/32 map-port=1400-1499=400-499 map-mac=04:05:06:07:08:09=02:00:00:00:00:01 vlan=map:8=7 vlan=pop";
    for sample in frames::samples() {
        let middle = altered(THERE, &sample.frame);
        assert_ne!(middle, sample.frame);
        assert_eq!(altered(BACK, &middle), sample.frame, "{}", sample.name);
    }
}

/// The longest prefix applies, and no address is mapped twice.
#[test]
fn the_longest_prefix_applies() {
    let frame = udp((1, 2), b"there");
    assert_eq!(frame[26..30], [10, 1, 2, 3]);
    for (maps, expected) in [
        (
            "map=10.0.0.0/8=20.0.0.0/8 map=10.1.0.0/16=30.1.0.0/16",
            [30, 1, 2, 3],
        ),
        (
            "map=10.0.0.0/8=20.0.0.0/8 map=20.0.0.0/8=30.0.0.0/8",
            [20, 1, 2, 3],
        ),
        ("map=0.0.0.0/0=9.9.9.9", [9, 9, 9, 9]),
        ("map=10.0.0.0/8=192.168.0.0/16", [192, 168, 2, 3]),
        ("map=dst:10.0.0.0/8=20.0.0.0/8", [10, 1, 2, 3]),
        ("map=src:10.1.2.3=20.0.0.0/8", [20, 1, 2, 3]),
    ] {
        let after = altered(maps, &frame);
        assert_eq!(after[26..30], expected, "{maps}");
        assert!(holds(&after));
    }
}
