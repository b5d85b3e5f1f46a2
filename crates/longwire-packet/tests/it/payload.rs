//! Transport payloads, compared with the offsets that scapy 2.8.0 reports for frames it built.

use longwire_packet::transport_payload;
use longwire_testbed::support::rows;
use proptest::prelude::*;

use crate::bytes_of;

/// A row of `payload.txt`: name, start and end of the payload, if any, and the frame. Padding was
/// appended to the frames; UDP-Lite was defined in scapy by its fields.
type Row = (&'static str, Option<(usize, usize)>, Vec<u8>);

fn scapy() -> Vec<Row> {
    let rows = rows(include_str!("payload.txt"));
    let rows = rows.map(|[name, start, end, frame]| {
        let payload = start.parse().ok().zip(end.parse().ok());
        (name, payload, bytes_of(frame))
    });
    rows.collect()
}

fn payload(frame: &[u8]) -> Option<(usize, usize)> {
    transport_payload(frame).map(|range| (range.start, range.end))
}

#[test]
fn payloads_are_where_scapy_finds_them() {
    let rows = scapy();
    assert!(rows.len() > 30);
    for (name, expected, frame) in rows {
        assert_eq!(payload(&frame), expected, "{name}");
        // For a truncated frame, the result is the captured part of the payload.
        for len in 0..frame.len() {
            let left = expected.map(|(start, end)| (start, end.min(len)));
            let left = left.filter(|(start, end)| start < end);
            assert_eq!(payload(&frame[..len]), left, "{name}: {len} bytes");
        }
    }
}

/// With inconsistent lengths, bytes that cannot be payload are excluded.
#[test]
fn lengths_of_malformed_packets_bound_the_payload() {
    let rows = scapy();
    let changed = |name: &str, at: usize, bytes: &[u8]| {
        let row = rows.iter().find(|(known, ..)| *known == name);
        let (.., mut frame) = row.expect(name).clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        payload(&frame)
    };
    // The datagram ends before its packet, after it, or within its header.
    for (name, at, bytes, expected) in [
        ("udp4", 38, &[0, 18][..], Some((42, 52))),
        ("udp4", 38, &[1, 0], Some((42, 79))),
        ("udp4", 38, &[0, 7], None),
        ("udp4", 38, &[0, 8], None),
        // The TCP header is shorter than the minimum, or longer than its packet.
        ("tcp4", 46, &[0x40], None),
        ("tcp4", 46, &[0xf0], None),
        ("tcp4", 46, &[0xe0], Some((90, 91))),
        // The packet ends within its own header, or after the frame.
        ("udp4", 16, &[0, 12], None),
        ("tcp4", 16, &[0xff, 0xff], Some((54, 91))),
        // The sender of a super-packet does not know its length.
        ("tcp4", 16, &[0, 0], Some((54, 91))),
    ] {
        assert_eq!(changed(name, at, bytes), expected, "{name} {at} {bytes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// In any frame, the payload lies within the frame, after the first headers.
    #[test]
    fn payloads_are_within_their_frames(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
let (.., mut frame) = scapy().swap_remove(which.index(30));
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        if let Some((start, end)) = payload(&frame) {
            prop_assert!(start >= 34 && start < end && end <= frame.len());
        }
    }
}
