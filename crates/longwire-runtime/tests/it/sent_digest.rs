//! Frame digests with and without mutable fields.

use std::collections::BTreeSet;

use longwire_engine::Nanos;
use longwire_runtime::sent::{IgnoredFields, SentFrames, digest, fingerprint, sent_log};
use longwire_testbed::support::frames::{PLAIN4, ethernet, ipv6, transport};

/// Returns an Ethernet frame with an IPv4 UDP datagram.
fn udp4() -> Vec<u8> {
    let datagram = transport(4, 17, (1_025, 1_026), 0, &[7; 20]);
    ethernet(&[], 0x0800, &PLAIN4.packet(17, &datagram))
}

/// Returns the same datagram over IPv6 with a hop-by-hop header.
fn udp6() -> Vec<u8> {
    let datagram = transport(6, 17, (1_025, 1_026), 0, &[7; 20]);
    let hops = (0, &[0, 0, 1, 4, 0, 0, 0, 0][..]);
    ethernet(&[], 0x86dd, &ipv6(0, &[hops], 17, &datagram))
}

fn whole(frame: &[u8], ignored: &str) -> u64 {
    let ignored = match ignored {
        "" => IgnoredFields::default(),
        fields => fields.parse().unwrap_or_else(|error| panic!("{error}")),
    };
    digest(frame, frame.len() as u32, &ignored)
}

/// Returns the positions of ignored bytes.
fn blind(frame: &[u8], ignored: &str) -> BTreeSet<usize> {
    let unchanged = whole(frame, ignored);
    let is_blind = |at: &usize| {
        let mut changed = frame.to_vec();
        // An inverted low bit turns neither version nor protocol into another known one.
        changed[*at] ^= 1;
        whole(&changed, ignored) == unchanged
    };
    (0..frame.len()).filter(is_blind).collect()
}

fn places(ranges: &[std::ops::Range<usize>]) -> BTreeSet<usize> {
    ranges.iter().cloned().flatten().collect()
}

#[test]
#[allow(
    clippy::single_range_in_vec_init,
    reason = "the ranges themselves are meant"
)]
fn every_byte_counts_but_those_of_ignored_fields() {
    let frame = udp4();
    for (ignored, ranges) in [
        ("", &[][..]),
        ("mac", &[0..12][..]),
        ("tos", &[15..16, 24..26]),
        ("ttl", &[22..23, 24..26]),
        ("address", &[24..34, 40..42]),
        ("port", &[34..38, 40..42]),
        ("checksum", &[24..26, 40..42]),
        ("mac, ttl,checksum", &[0..12, 22..23, 24..26, 40..42]),
    ] {
        assert_eq!(blind(&frame, ignored), places(ranges), "{ignored}");
    }
    let frame = udp6();
    for (ignored, ranges) in [
        ("ttl", &[21..22][..]),
        ("address", &[22..54, 68..70]),
        ("port", &[62..66, 68..70]),
        ("checksum", &[68..70]),
    ] {
        assert_eq!(blind(&frame, ignored), places(ranges), "{ignored}");
    }
    let mut other = frame.clone();
    (other[14], other[15]) = (0x6a, 0x5a);
    assert_eq!(whole(&frame, "tos"), whole(&other, "tos"));
}

#[test]
fn later_fragments_have_no_ports_to_ignore() {
    let mut frame = udp4();
    frame[21] = 8;
    assert_eq!(blind(&frame, "port"), BTreeSet::new());
}

#[test]
fn a_frame_cut_short_equals_one_that_ends_in_zeros() {
    let mut frame = udp4();
    frame.resize(1_400, 0);
    for held in [62, 64, 100, 255, 256, 257, 1_399] {
        let cut = digest(&frame[..held], 1_400, &IgnoredFields::default());
        assert_eq!(cut, whole(&frame, ""), "{held}");
    }
    assert_ne!(whole(&frame[..1_399], ""), whole(&frame, ""));
}

#[test]
fn frames_that_differ_little_have_digests_of_their_own() {
    let mut digests = BTreeSet::new();
    let mut frame = vec![0; 1_500];
    for number in 0..50_000u32 {
        frame[1_000..1_004].copy_from_slice(&number.to_be_bytes());
        digests.insert(whole(&frame, ""));
    }
    assert_eq!(digests.len(), 50_000);
    // The low bits alone are well distributed, as hash tables need.
    let low: BTreeSet<u64> = digests.iter().map(|digest| digest % 65_536).collect();
    assert!(low.len() > 33_000, "{}", low.len());
}

#[test]
fn short_and_strange_frames_are_no_trouble() {
    let ignored: IgnoredFields = "mac,address,port,tos,ttl,checksum"
        .parse()
        .unwrap_or_default();
    for frame in [udp4(), udp6()] {
        for len in 0..frame.len() {
            digest(&frame[..len], 60, &ignored);
        }
    }
    let unknown = "mac,colour".parse::<IgnoredFields>().err();
    let text = unknown.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        text.contains("'colour'") && text.contains("checksum"),
        "{text}"
    );
}

fn drained(sent: &SentFrames) -> Vec<(u64, Nanos)> {
    let mut all = Vec::new();
    sent.drain(|frame, left| all.push((frame.digest, left)));
    all
}

#[test]
fn frames_arrive_in_order_with_their_handover() {
    let (mut log, sent) = sent_log("a", IgnoredFields::default());
    let known = |byte| fingerprint(&[byte; 70], &IgnoredFields::default()).0;
    let (early, late) = (Nanos::from_micros(5), Nanos::from_micros(9));
    log.note(&[1; 70], Some(early));
    log.send(late);
    log.send(late);
    assert_eq!(drained(&sent), [(known(1), late)]);
    // The frames are handed over early and held until their release.
    log.note(&[2; 70], Some(late));
    log.note(&[3; 70], Some(early));
    assert!(drained(&sent).is_empty());
    log.send(early);
    assert_eq!(drained(&sent), [(known(2), late), (known(3), early)]);
    // A frame without a time is due at its handover.
    log.note(&[1; 70], None);
    log.send(late);
    let mut due = Vec::new();
    sent.drain(|frame, left| due.push((frame.release, left)));
    assert_eq!(due, [(late, late)]);
}

#[test]
fn a_short_frame_is_known_by_its_filled_form() {
    let known = |bytes: &[u8]| fingerprint(bytes, &IgnoredFields::default());
    let mut filled = vec![7; 42];
    filled.resize(60, 0);
    assert_eq!(known(&[7; 42]), known(&filled));
    filled.push(0);
    assert_ne!(known(&[7; 42]), known(&filled));
}
