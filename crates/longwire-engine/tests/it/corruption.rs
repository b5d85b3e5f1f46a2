//! Corruption: number and position of flipped bits, and checksums.

use std::ops::Range;

use crate::common::{assert_binomial, cross, link};
use longwire_engine::DropReason;
use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, Sample};
use proptest::prelude::*;

const CONFIDENCE: f64 = 0.9998;

/// Sends `count` copies of a frame over a corrupting link, and passes each delivered frame with its
/// flipped bits to `take`.
fn send(corrupt: &str, frame: &[u8], count: u64, mut take: impl FnMut(&[u8], &[u64])) {
    let mut link = link(&format!("corrupt={corrupt}"), 1);
    for index in 0..count {
        let (_, bytes) = cross(&mut link, index * 1_000, frame).expect("a delivery");
        take(&bytes, &changed(frame, &bytes));
    }
}

/// Returns the positions of differing bits.
fn changed(one: &[u8], other: &[u8]) -> Vec<u64> {
    let bits = (0..one.len() as u64 * 8).filter(|bit| {
        let (at, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
        (one[at] ^ other[at]) & mask != 0
    });
    bits.collect()
}

fn assert_within(what: &str, count: u64, trials: u64, p: f64) {
    assert_binomial(what, count, trials, p, CONFIDENCE);
}

/// Returns one frame as it arrives.
fn arrived(corrupt: &str, frame: &[u8]) -> Vec<u8> {
    let mut arrived = Vec::new();
    send(corrupt, frame, 1, |bytes, _| arrived = bytes.to_vec());
    arrived
}

/// Asserts that half of the frames have `bits` flipped bits, that bits in `range` are flipped
/// equally often, and that other bits never are.
fn assert_spread(
    (what, corrupt): (&str, &str),
    frame: &[u8],
    (bits, range): (u64, Range<u64>),
    (frames, confidence): (u64, f64),
) {
    let mut hits = vec![0u64; frame.len() * 8];
    let mut corrupted = 0;
    send(corrupt, frame, frames, |_, changed| {
        assert!(changed.is_empty() || changed.len() as u64 == bits, "{what}");
        corrupted += u64::from(!changed.is_empty());
        changed.iter().for_each(|bit| hits[*bit as usize] += 1);
    });
    assert_within(what, corrupted, frames, 0.5);
    let share = bits as f64 / (range.end - range.start) as f64;
    for (bit, hits) in (0..).zip(hits) {
        let p = if range.contains(&bit) { share } else { 0.0 };
        assert_binomial(format!("{what}: bit {bit}"), hits, corrupted, p, confidence);
    }
}

/// All 80 bits are flipped equally often, and each frame has the requested number of flipped bits.
#[test]
fn random_bits_are_spread_evenly() {
    for bits in [1u64, 3, 16, 17, 79, 80, 500] {
        let text = format!("random:rate=50%,bits={bits}");
        let (wanted, sample) = ((bits.min(80), 0..80), (40_000, CONFIDENCE));
        assert_spread((&text, &text), &[0x5a; 10], wanted, sample);
    }
}

/// Asserts that the number of flipped eligible bits is binomial: the frequency of each count up to
/// seven, and the mean.
fn assert_bit_errors(corrupt: &str, frame: &[u8], (bits, rate): (usize, f64), frames: u64) {
    let mut counts = [0u64; 8];
    let mut sum = 0u64;
    send(corrupt, frame, frames, |_, changed| {
        sum += changed.len() as u64;
        if let Some(count) = counts.get_mut(changed.len()) {
            *count += 1;
        }
    });
    let mut probability = (1.0 - rate).powi(bits as i32);
    for (inverted, count) in counts.into_iter().enumerate() {
        let what = format!("{corrupt}, {bits} bits, {inverted} inverted");
        assert_within(&what, count, frames, probability);
        let left = (bits - inverted) as f64 / (inverted + 1) as f64;
        probability *= left * rate / (1.0 - rate);
    }
    assert_within(corrupt, sum, frames * bits as u64, rate);
}

#[test]
fn bit_errors_are_binomial() {
    for (rate, len) in [(1e-4f64, 125usize), (2e-3, 125), (0.01, 40), (0.5, 3)] {
        let frame = vec![0x11; len];
        assert_bit_errors(&format!("ber:{rate:e}"), &frame, (len * 8, rate), 100_000);
    }
}

#[test]
fn bit_errors_of_payloads_are_binomial() {
    for sample in frames::samples() {
        let bits = (sample.frame.len() - payload_at(&sample)) * 8;
        let rate = 2.0 / bits as f64;
        let padded = [sample.frame.as_slice(), &[0; 9]].concat();
        let text = format!("ber:rate={rate:e},part=payload");
        assert_bit_errors(&text, &padded, (bits, rate), 40_000);
    }
}

/// At this rate, the number of errors is drawn in several parts.
#[test]
fn many_bit_errors_are_binomial_too() {
    const FRAMES: u64 = 1_000;
    let mut sum = 0u64;
    send("ber:0.3", &[0x77; 1_500], FRAMES, |_, changed| {
        sum += changed.len() as u64;
        // Ten standard deviations (50 each).
        assert!(changed.len().abs_diff(3_600) < 500, "{}", changed.len());
    });
    assert_within("bits in all", sum, FRAMES * 12_000, 0.3);
    send("ber:0", &[0x77; 1_500], 1_000, |_, changed| {
        assert!(changed.is_empty())
    });
}

#[test]
fn bits_at_an_offset_are_those_asked_for() {
    // Flips at most the remaining bits, and none past the end.
    for (text, flipped) in [
        ("offset:offset=3,bits=12", 24..36),
        ("offset:8", 64..65),
        ("offset:offset=8,bits=100", 64..72),
        ("offset:9", 72..72),
    ] {
        send(text, &[0; 9], 5, |_, changed| {
            assert!(changed.iter().copied().eq(flipped.clone()), "{changed:?}");
        });
    }
    let mut corrupted_frames = 0;
    send("offset:offset=1,rate=20%", &[0; 9], 50_000, |_, changed| {
        corrupted_frames += changed.len() as u64;
    });
    assert_within("frames", corrupted_frames, 50_000, 0.2);
}

/// Flips two bits in the payload, the transport header or an address. Kept checksums become wrong;
/// repaired ones are correct, and nothing else changes.
#[test]
fn checksums_are_kept_or_repaired() {
    for sample in frames::samples() {
        let Sample { name, frame, .. } = &sample;
        assert!(sample.holds(frame), "{name}");
        let address = sample.ip_at + if sample.version == 4 { 14 } else { 20 };
        let end = frame.len();
        for at in [end - 1, end - 2, sample.transport_at, address] {
            let arrived = |checksum| {
                let text = format!("offset:offset={at},bits=2,checksum={checksum}");
                arrived(&text, frame)
            };
            let kept = arrived("keep");
            assert_eq!(changed_bytes(frame, &kept), [at], "{name}");
            assert!(!sample.holds(&kept), "{name} at {at}");
            // An ICMP checksum over IPv4 covers no addresses.
            let uncovered = at == address && sample.protocol == 1;
            assert_eq!(sample.transport_holds(&kept), uncovered, "{name} at {at}");
            let repaired = arrived("repair");
            assert!(sample.holds(&repaired), "{name} at {at}");
            assert_eq!(repaired[at], kept[at], "{name} at {at}");
            let others = changed_bytes(&kept, &repaired);
            assert!(others.len() <= 4, "{name} at {at}: {others:?}");
        }
    }
}

/// If a datagram is shorter than its packet, the checksum excludes the trailing bytes, and the
/// pseudo-header contains the datagram's length (RFC 768). If it is longer than its packet or
/// shorter than its header, no checksum is correct, and the old one is kept.
#[test]
fn the_length_of_a_datagram_counts_in_its_checksum() {
    for version in [4, 6] {
        let datagram = frames::transport(version, 17, (7, 9), 0, &[0xab; 56]);
        let packet = match version {
            4 => PLAIN4.packet(17, &datagram),
            _ => frames::ipv6(0, &[], 17, &datagram),
        };
        let ethertype = if version == 4 { 0x0800 } else { 0x86dd };
        let frame = frames::ethernet(&[], ethertype, &packet);
        let udp = frame.len() - datagram.len();
        // The length 64 becomes 192, 128, 160 or 191, beyond the end of the packet.
        for bits in [1, 2, 3, 8] {
            let text = format!("offset:offset={},bits={bits},checksum=repair", udp + 5);
            let repaired = arrived(&text, &frame);
            assert_eq!(
                changed_bytes(&frame, &repaired),
                [udp + 5],
                "{version} {bits}"
            );
        }
        let mut shorter = frame.clone();
        shorter[udp + 5] = 40;
        let sum = frames::datagram_sum(version, &shorter[..udp + 40], udp);
        assert_ne!(sum, 0, "{version}: it was right by accident");
        assert!(longwire_packet::repair_checksums(&mut shorter));
        let sum = frames::datagram_sum(version, &shorter[..udp + 40], udp);
        assert_eq!(sum, 0, "{version}: a receiver drops it");
        let own = [udp + 5, udp + 6, udp + 7];
        let others = changed_bytes(&frame, &shorter);
        assert!(others.iter().all(|at| own.contains(at)), "{others:?}");
    }
}

/// A frame whose corruption is undone by the checksum repair is not reported as corrupted.
#[test]
fn a_frame_that_the_repair_gives_back_is_not_corrupted() {
    let mut restored = 0;
    for sample in frames::samples() {
        let Sample { name, frame, .. } = &sample;
        let at = if sample.version == 4 {
            sample.ip_at + 10
        } else if sample.protocol == 58 {
            sample.transport_at + 2
        } else {
            continue;
        };
        let line = format!("corrupt=offset:offset={at},checksum=repair");
        let (delivery, _) = cross(&mut link(&line, 1), 0, frame).expect(name);
        assert!(!delivery.edits.corrupt, "{name}");
        restored += 1;
    }
    assert!(restored > 4);
    // With all bits eligible, the flag `corrupt` is set exactly if the frame changes.
    for sample in frames::samples() {
        let mut link = link("corrupt=random:rate=80%,checksum=repair", 9);
        let (mut differs, mut same) = (0, 0);
        for index in 0..2_000 {
            let Sample { name, frame, .. } = &sample;
            let (delivery, bytes) = cross(&mut link, index * 1_000, frame).expect(name);
            assert_eq!(delivery.edits.corrupt, bytes != *frame, "{name}");
            differs += u32::from(delivery.edits.corrupt);
            same += u32::from(!delivery.edits.corrupt);
        }
        assert!(differs > 1_000 && same > 300, "{differs} {same}");
    }
}

/// Returns the start of a sample's payload.
fn payload_at(sample: &Sample) -> usize {
    sample.transport_at + if sample.protocol == 6 { 20 } else { 8 }
}

/// Payload bits are flipped equally often; headers and padding never are.
#[test]
fn only_bits_of_the_payload_are_inverted() {
    for sample in frames::samples() {
        let range = payload_at(&sample) as u64 * 8..sample.frame.len() as u64 * 8;
        let padded = [sample.frame.as_slice(), &[0; 20]].concat();
        let bits = 3.min(range.end - range.start);
        let text = format!("random:rate=50%,bits={bits},part=payload");
        // 6,000 bits in total: fewer than one in 1,000 correct models would fail.
        let confidence = 0.999_999_9;
        let (wanted, trials) = ((bits, range), (20_000, confidence));
        assert_spread((sample.name, &text), &padded, wanted, trials);
    }
}

/// Offsets count from the first byte of the payload, and corruption ends at its last byte.
#[test]
fn an_offset_into_the_payload_counts_from_its_beginning() {
    for sample in frames::samples() {
        let (start, end) = (payload_at(&sample), sample.frame.len());
        let (name, len) = (sample.name, end - start);
        let padded = [sample.frame.as_slice(), &[0; 20]].concat();
        for (offset, bits) in [(0, 1), (0, 12), (len - 1, 30), (len / 2, 8 * len), (len, 1)] {
            let text = format!("offset:offset={offset},bits={bits},part=payload");
            let first = (start + offset) as u64 * 8;
            send(&text, &padded, 1, |_, changed| {
                let last = (first + bits as u64).min(end as u64 * 8);
                assert!(changed.iter().copied().eq(first..last), "{name} {text}");
            });
        }
    }
}

/// A frame without payload stays unchanged and does not count as corrupted.
#[test]
fn frames_without_a_payload_are_not_corrupted() {
    let ack = frames::transport(4, 6, (1, 2), 0x10, &[]);
    let mut padded = frames::ethernet(&[], 0x0800, &PLAIN4.packet(6, &ack));
    padded.resize(60, 0);
    let arp = frames::ethernet(&[], 0x0806, &[7; 46]);
    let tunnel = PLAIN4.packet(4, &PLAIN4.packet(6, &ack));
    let tunnel = frames::ethernet(&[], 0x0800, &tunnel);
    for frame in [padded, arp, tunnel] {
        for model in ["random:100%", "ber:0.4", "offset:0"] {
            for checksum in ["keep", "repair"] {
                let line = format!("corrupt={model},part=payload,checksum={checksum}");
                let mut link = link(&line, 3);
                for index in 0..50 {
                    let (delivery, _) = cross(&mut link, index * 1_000, &frame).expect(&line);
                    assert!(!delivery.edits.any(), "{line}");
                }
            }
        }
    }
    // A frame without payload also draws, so that later frames are corrupted identically.
    let frame = frames::samples().swap_remove(0).frame;
    let arp = frames::ethernet(&[], 0x0806, &vec![7; frame.len() - 14]);
    let corrupted = |first: &[u8]| {
        let mut link = link("corrupt=random:50%,part=payload", 3);
        let corrupted = (0..200).map(|index| {
            let bytes = if index % 2 == 0 { first } else { &frame };
            cross(&mut link, index * 1_000, bytes)
                .expect("a delivery")
                .1
        });
        corrupted.skip(1).step_by(2).collect::<Vec<_>>()
    };
    assert!(corrupted(&arp) == corrupted(&frame));
}

fn changed_bytes(one: &[u8], other: &[u8]) -> Vec<usize> {
    let differs = |at: &usize| one[*at] != other[*at];
    (0..one.len()).filter(differs).collect()
}

/// A frame without a checksum gets none, and a checksum that covers bytes outside the frame is left
/// unchanged.
#[test]
fn some_checksums_are_left_alone() {
    let mut udp = frames::transport(4, 17, (1, 2), 0, &[5; 20]);
    udp[6..8].fill(0);
    let fragment = |fragment| {
        let segment = frames::transport(4, 17, (1, 2), 0, &[5; 32]);
        let ip = Ipv4 { fragment, ..PLAIN4 };
        ip.packet(17, &segment)
    };
    let routing: (u8, &[u8]) = (
        43,
        &[
            0, 2, 3, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ],
    );
    let tcp6 = frames::transport(6, 6, (1, 2), 0, &[5; 20]);
    for (name, packet) in [
        ("without a checksum", PLAIN4.packet(17, &udp)),
        ("first fragment", fragment(0x2000)),
        ("later fragment", fragment(0x0007)),
        (
            "hops that are not understood",
            frames::ipv6(0, &[routing], 6, &tcp6),
        ),
    ] {
        let ethertype = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let frame = frames::ethernet(&[], ethertype, &packet);
        let last = frame.len() - 1;
        let text = format!("offset:offset={last},checksum=repair");
        send(&text, &frame, 1, |_, changed| {
            assert_eq!(changed, [last as u64 * 8], "{name}");
        });
    }
}

/// Corruption draws for lost frames too, and does not affect loss.
#[test]
fn loss_and_corruption_leave_each_other_alone() {
    let outcome = |line: &str| {
        let mut link = link(line, 5);
        let bytes = |index: u64| cross(&mut link, index * 1_000, &[0; 100]).map(|(_, bytes)| bytes);
        (0..3_000).map(bytes).collect::<Vec<_>>()
    };
    let both = outcome("corrupt=ber:1e-3 loss=30%");
    let corrupted = outcome("corrupt=ber:1e-3");
    let lost = outcome("loss=30%");
    for ((both, corrupted), lost) in both.iter().zip(&corrupted).zip(&lost) {
        assert_eq!(both.is_err(), lost.is_err());
        assert!(*both == Err(DropReason::Loss) || both == corrupted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// On corrupted or truncated frames, repair changes only checksums and is idempotent; intact
    /// frames stay unchanged.
    #[test]
    fn repair_is_its_own_repair(
        which in 0usize..11,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..6),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut frame = frames::samples().swap_remove(which).frame;
        for (at, bit) in &flips {
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
        }
        if !whole {
            frame.truncate(cut.index(frame.len() + 1));
        }
        let mut once = frame.clone();
        longwire_packet::repair_checksums(&mut once);
        prop_assert!(changed_bytes(&frame, &once).len() <= 4);
        let mut twice = once.clone();
        longwire_packet::repair_checksums(&mut twice);
        prop_assert_eq!(&twice, &once);
        if flips.is_empty() && whole {
            prop_assert_eq!(&once, &frame, "a correct checksum stays");
        }
    }

    /// With repair, checksums are correct and only they and the payload change; without repair,
    /// only the payload changes.
    #[test]
    fn nothing_but_payload_and_checksums_changes(
        which in 0usize..11,
        model in prop::sample::select(vec![
            "random:rate=100%,bits=1", "random:rate=100%,bits=40", "ber:rate=0.1",
            "offset:offset=0,bits=9", "offset:offset=5",
        ]),
        repair in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let sample = frames::samples().swap_remove(which);
        let checksum = if repair { "repair" } else { "keep" };
        let line = format!("corrupt={model},part=payload,checksum={checksum}");
        let mut link = link(&line, seed);
        let (delivery, bytes) = cross(&mut link, 0, &sample.frame).expect("a delivery");
        prop_assert_eq!(delivery.edits.corrupt, bytes != sample.frame);
        let at = match sample.protocol {
            6 => 16,
            17 => 6,
            _ => 2,
        };
        let sum = sample.transport_at + at..sample.transport_at + at + 2;
        let payload = payload_at(&sample)..bytes.len();
        for at in changed_bytes(&sample.frame, &bytes) {
            prop_assert!(payload.contains(&at) || repair && sum.contains(&at), "{}", at);
        }
        prop_assert!(!repair || sample.holds(&bytes));
    }
}
