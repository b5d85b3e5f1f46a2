//! Marks, rewritten headers and fragments: only the intended fields and checksums change, and
//! checksums are correct.

use longwire_engine::{DropReason, Verdict};
use longwire_packet::header::{Ecn, IpHeader};
use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, ethernet, header_holds, ipv6};
use proptest::prelude::*;

use crate::common::{cross, link};

fn rewritten(rewrite: &str, frame: &[u8]) -> Result<Vec<u8>, DropReason> {
    let crossed = cross(&mut link(&format!("rewrite={rewrite}"), 1), 0, frame);
    crossed.map(|(_, bytes)| bytes)
}

/// Returns the positions of differing bytes, ignoring the IPv4 header checksum.
fn differences(sample: &frames::Sample, other: &[u8]) -> Vec<usize> {
    let sum = sample.ip_at + 10..sample.ip_at + 12;
    let differs = |at: &usize| sample.frame[*at] != other[*at];
    let counts = |at: &usize| sample.version == 6 || !sum.contains(at);
    (0..other.len()).filter(differs).filter(counts).collect()
}

#[test]
fn fields_of_ip_headers_are_rewritten() {
    for sample in frames::samples() {
        let name = sample.name;
        let before = IpHeader::parse(&sample.frame).unwrap();
        assert_eq!((before.dscp, before.ecn), (46, Ecn::Capable0), "{name}");
        for (rewrite, dscp, ecn, ttl) in [
            ("ip:ttl=1", 46, Ecn::Capable0, before.ttl - 1),
            ("ip:dscp=0", 0, Ecn::Capable0, before.ttl),
            ("ip:dscp=63", 63, Ecn::Capable0, before.ttl),
            ("ip:ecn=not-ect", 46, Ecn::NotCapable, before.ttl),
            ("ip:ecn=ce", 46, Ecn::Marked, before.ttl),
            (
                "ip:ttl=60,dscp=10,ecn=ect1",
                10,
                Ecn::Capable1,
                before.ttl - 60,
            ),
        ] {
            let bytes = rewritten(rewrite, &sample.frame).unwrap();
            let after = IpHeader::parse(&bytes).unwrap();
            let found = (after.dscp, after.ecn, after.ttl);
            assert_eq!(found, (dscp, ecn, ttl), "{name}, {rewrite}");
            assert!(sample.holds(&bytes), "{name}, {rewrite}");
            let fields = match sample.version {
                4 => [1, 1, 8],
                _ => [0, 1, 7],
            };
            let others = differences(&sample, &bytes);
            let fields = fields.map(|field| sample.ip_at + field);
            assert!(
                others.iter().all(|at| fields.contains(at)),
                "{name}, {rewrite}: {others:?}"
            );
            // Version and flow label share bytes with the traffic class.
            assert_eq!(bytes[sample.ip_at] >> 4, sample.version);
            if sample.version == 6 {
                assert_eq!(bytes[sample.ip_at + 1] & 15, 0xa, "{name}, {rewrite}");
            }
        }
        let kept = rewritten("ip:dscp=46,ecn=ect0", &sample.frame).unwrap();
        assert_eq!(kept, sample.frame, "{name}");
    }
}

#[test]
fn packets_with_expired_time_to_live_are_dropped() {
    for (ttl, taken, passes) in [
        (1, 1, false),
        (2, 1, true),
        (5, 7, false),
        (8, 7, true),
        (0, 0, true),
    ] {
        let rewrite = format!("ip:ttl={taken}");
        let ip = Ipv4 { ttl, ..PLAIN4 };
        let frame = ethernet(&[], 0x0800, &ip.packet(17, &[0; 8]));
        let outcome = rewritten(&rewrite, &frame);
        if passes {
            assert_eq!(outcome.unwrap()[22], ttl - taken)
        } else {
            assert_eq!(outcome, Err(DropReason::Ttl))
        }
        let mut packet = ipv6(0, &[], 17, &[0; 8]);
        packet[7] = ttl;
        let outcome = rewritten(&rewrite, &ethernet(&[], 0x86dd, &packet));
        assert_eq!(outcome.is_ok(), passes, "{ttl}, {taken}");
    }
    // Without IP, there is no TTL and nothing to rewrite.
    let arp = ethernet(&[], 0x0806, &[7; 46]);
    assert_eq!(rewritten("ip:ttl=255,dscp=1,ecn=ce", &arp), Ok(arp));
}

/// The edit `mark` sets CE in ECN-capable packets only.
#[test]
fn marks_are_put_on_packets_that_take_them() {
    for (ecn, marked) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
        let ip = Ipv4 {
            class: 0xb8 | ecn,
            options: &[1, 1, 1, 0],
            ..PLAIN4
        };
        let packets = [
            (0x0800, 4, ip.packet(17, &[1; 9])),
            (0x86dd, 6, ipv6(0xb8 | ecn, &[], 17, &[1; 9])),
        ];
        for (ethertype, version, packet) in packets {
            let frame = ethernet(&[9], ethertype, &packet);
            let mut link = link("", 1);
            let Verdict::Deliver(mut delivery) = link.offer(crate::common::frame(0, 64), &frame)
            else {
                panic!("not delivered");
            };
            delivery.edits.mark = true;
            let mut bytes = frame.clone();
            link.edit(&delivery, &mut bytes);
            let after = IpHeader::parse(&bytes).unwrap();
            assert_eq!(
                (after.ecn as u8, after.dscp),
                (marked, 46),
                "IPv{version}, {ecn}"
            );
            assert!(version == 6 || header_holds(&bytes, 18));
            assert_eq!(bytes == frame, ecn == marked);
        }
    }
}

/// Returns a frame's fragments; empty if it is not fragmented.
fn pieces(mtu: u32, frame: &[u8]) -> Vec<Vec<u8>> {
    let link = link(&format!("mtu=fragment:{mtu}"), 1);
    let mut fragments = longwire_engine::Fragments::default();
    let cut = fragments.cut(link.mtu(), frame);
    let pieces: Vec<Vec<u8>> = fragments.iter().map(<[u8]>::to_vec).collect();
    assert_eq!(cut, !pieces.is_empty());
    pieces
}

fn word(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Reassembles fragments (RFC 791, section 3.2). Returns the payload and whether the last fragment
/// has arrived.
fn reassemble(pieces: &[Vec<u8>], ip_at: usize) -> (Vec<u8>, bool) {
    let (mut payload, mut last) = (Vec::new(), false);
    for piece in pieces {
        let header_len = usize::from(piece[ip_at] & 15) * 4;
        let field = word(piece, ip_at + 6);
        let offset = (field & 0x1fff) * 8;
        let data = &piece[ip_at + header_len..ip_at + word(piece, ip_at + 2)];
        payload.resize(payload.len().max(offset + data.len()), 0xee);
        payload[offset..offset + data.len()].copy_from_slice(data);
        last |= field & 0x2000 == 0;
    }
    (payload, last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn pieces_make_up_the_whole(
        len in 1usize..4_000,
        mtu in 68u32..1_600,
        words in 0usize..=10,
        tags in 0usize..3,
        padding in 0usize..5,
    ) {
        let payload: Vec<u8> = (0..len as u32).map(|n| (n * 31 % 251) as u8).collect();
        // Record route, which only the first fragment contains.
        let mut options = vec![0; words * 4];
        if words > 0 {
            options[0] = 7;
            options[1] = (words * 4).min(39) as u8;
            options[2] = 4;
        }
        let ip = Ipv4 { class: 0xb9, options: &options, ..PLAIN4 };
        let packet = ip.packet(17, &payload);
        let vlans = &[100, 7][..tags];
        let ip_at = 14 + 4 * tags;
        let mut frame = ethernet(vlans, 0x0800, &packet);
        frame.extend(vec![0; padding]);
        let pieces = pieces(mtu, &frame);
        prop_assert_eq!(pieces.is_empty(), frame.len() - ip_at <= mtu as usize);
        if pieces.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(reassemble(&pieces, ip_at), (payload, true));
        for (index, piece) in pieces.iter().enumerate() {
            let total = word(piece, ip_at + 2);
            prop_assert_eq!(piece.len(), ip_at + total);
            prop_assert!(total <= mtu as usize);
            prop_assert!(header_holds(piece, ip_at));
            prop_assert_eq!(&piece[..ip_at], &frame[..ip_at]);
            // Traffic class, identification, TTL, protocol, addresses.
            for range in [1..2, 4..6, 8..10, 12..20] {
                let range = ip_at + range.start..ip_at + range.end;
                prop_assert_eq!(&piece[range.clone()], &frame[range]);
            }
            let last = index + 1 == pieces.len();
            prop_assert_eq!(word(piece, ip_at + 6) & 0x2000 == 0, last);
            let payload = total - usize::from(piece[ip_at] & 15) * 4;
            prop_assert!(last || payload.is_multiple_of(8));
            // Later fragments omit options that must not be copied.
            prop_assert_eq!(piece[ip_at] & 15, if index == 0 { 5 + words as u8 } else { 5 });
        }
    }
}

#[test]
fn pieces_of_pieces_and_options() {
    // A loose source route, which is copied, between options that are not.
    let options = [1, 7, 7, 4, 0, 0, 0, 0, 0x83, 7, 4, 9, 9, 9, 9, 0];
    let ip = Ipv4 {
        fragment: 0x2000 | 10,
        options: &options,
        ..PLAIN4
    };
    let payload: Vec<u8> = (0..160).collect();
    let frame = ethernet(&[], 0x0800, &ip.packet(6, &payload));
    let cut = pieces(100, &frame);
    // 64 payload bytes per fragment after the full header.
    let fields: Vec<usize> = cut.iter().map(|piece| word(piece, 20)).collect();
    assert_eq!(fields, [0x2000 | 10, 0x2000 | 18, 0x2000 | 26]);
    assert_eq!(cut[0][14] & 15, 9);
    for piece in &cut[1..] {
        assert_eq!(piece[14] & 15, 7);
        assert_eq!(piece[34..42], [0x83, 7, 4, 9, 9, 9, 9, 0]);
        assert!(header_holds(piece, 14));
    }
    let (whole, last) = reassemble(&cut, 14);
    assert_eq!((&whole[80..], last), (payload.as_slice(), false));
}

#[test]
fn frames_that_cannot_be_cut_are_dropped() {
    let outcome = |frame: &[u8]| {
        assert!(pieces(600, frame).is_empty());
        cross(&mut link("mtu=fragment:600", 1), 0, frame).map(|(_, bytes)| bytes)
    };
    let long = [0; 1_000];
    let kept_whole = Ipv4 {
        fragment: 0x4000,
        ..PLAIN4
    };
    // The fragment would end beyond the maximum packet length.
    let behind = Ipv4 {
        fragment: 0x1fff,
        ..PLAIN4
    };
    let whole = ethernet(&[], 0x0800, &PLAIN4.packet(17, &long));
    for (name, frame) in [
        ("DF", ethernet(&[], 0x0800, &kept_whole.packet(17, &long))),
        ("IPv6", ethernet(&[], 0x86dd, &ipv6(0, &[], 17, &long))),
        ("ARP", ethernet(&[], 0x0806, &long)),
        ("end", ethernet(&[], 0x0800, &behind.packet(17, &long))),
        ("incomplete", whole[..900].to_vec()),
    ] {
        assert_eq!(outcome(&frame), Err(DropReason::Mtu), "{name}");
    }
    // Frames that fit are not fragmented.
    let fits = ethernet(&[], 0x0800, &kept_whole.packet(17, &long[..580]));
    assert_eq!(outcome(&fits).map(|bytes| bytes.len()), Ok(614));
}
