//! Software checksums and segmentation, compared with a naive verifier.
use crate::common::frames::{FrameSpec, pseudo_sum, verify};
use longwire_io::port::offload::{
    Checksum, Headers, Joiner, Offload, SegmentKind, Segments, Splitter, SuperPacket, TrainPart,
    cut, cut_tcp, finish_checksum, finish_if_partial, strip_jumbo,
};
use longwire_io::port::vnet::{self, Decoded};
use proptest::prelude::*;

prop_compose! {
    pub fn any_spec()(
        (v6, udp) in any::<(bool, bool)>(),
        (vlan_tags, extras, tcp_options) in (0usize..3, 0usize..4, 0usize..11),
        (tcp_flags, sequence, id) in any::<(u8, u32, u16)>(),
        payload in prop::collection::vec(any::<u8>(), 0..6000),
    ) -> FrameSpec {
        FrameSpec { v6, udp, vlan_tags, extras, tcp_options, tcp_flags, sequence, id, payload }
    }
}

proptest! {
    #[test]
    fn both_ways_of_finishing_give_right_checksums(spec in any_spec()) {
        let mut told = spec.build_partial();
        prop_assert!(finish_checksum(&mut told, spec.checksum()));
        verify(&told, &spec);

        let mut found = spec.build_partial();
        prop_assert!(finish_if_partial(&mut found));
        prop_assert_eq!(&found, &told);
        // Padding after the packet is not part of it.
        let mut padded = spec.build_partial();
        padded.extend([0xaa; 9]);
        prop_assert!(finish_if_partial(&mut padded));
        prop_assert_eq!(&padded[..found.len()], &found[..]);
        // Repeating the call has no effect.
        finish_if_partial(&mut found);
        prop_assert_eq!(found, told);
    }

    #[test]
    fn wrong_checksums_stay_wrong(spec in any_spec(), delta in 1u16..0xffff) {
        let mut frame = spec.build_partial();
        finish_checksum(&mut frame, spec.checksum());
        let at = spec.checksum_at();
        let wrong = u16::from_be_bytes([frame[at], frame[at + 1]]).wrapping_add(delta);
        let protocol = if spec.udp { 17 } else { 6 };
        let partial = pseudo_sum(&frame, spec.network_at(), spec.transport_at(), protocol);
        prop_assume!(wrong != partial);
        frame[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
        let before = frame.clone();
        prop_assert!(!finish_if_partial(&mut frame));
        prop_assert_eq!(frame, before);
    }

    #[test]
    fn wire_frames_carry_the_payload_in_order(
        spec in any_spec(),
        size in 1u16..3000,
        cwr_once: bool,
    ) {
        let super_frame = spec.build_partial();
        let segments = Segments { cwr_once, ..spec.segments(size) };
        let lens: Vec<usize> = segments.wire_frames(super_frame.len()).collect();
        prop_assert_eq!(lens.len(), segments.wire_frames(super_frame.len()).len());
        let mut payload = Vec::new();
        let mut out = Vec::new();
        for (i, len) in lens.iter().enumerate() {
            let offload = cut(&super_frame, segments, i..i + 1, &mut out);
            prop_assert_eq!(offload, Some(Offload::NONE));
            prop_assert_eq!(out.len(), *len);
            check_numbers(&out, (&spec, cwr_once), i, payload.len(), lens.len());
            payload.extend(verify(&out, &spec));
            let mut later = Vec::new();
            let packet = SuperPacket::of(&super_frame, segments).unwrap();
            let offload = packet.cut_unfinished(i..i + 1, &mut later);
            let offload = offload.expect("a wire frame");
            prop_assert_eq!(offload.segments, None);
            if let Some(checksum) = offload.checksum {
                prop_assert!(finish_checksum(&mut later, checksum));
            }
            prop_assert_eq!(&later, &out);
        }
        prop_assert_eq!(payload, spec.payload);
        prop_assert_eq!(cut(&super_frame, segments, lens.len()..lens.len() + 1, &mut out), None);
    }

    /// Cutting in two steps gives the same wire frames as cutting once.
    #[test]
    fn pieces_of_pieces_are_the_same_wire_frames(
        spec in any_spec(),
        size in 1u16..2000,
        split in any::<prop::sample::Index>(),
    ) {
        let super_frame = spec.build_partial();
        let segments = spec.segments(size);
        let count = segments.wire_frames(super_frame.len()).len();
        let at = split.index(count);
        let (mut piece, mut twice, mut once) = (Vec::new(), Vec::new(), Vec::new());
        for range in [0..at, at..count] {
            let Some(offload) = cut(&super_frame, segments, range.clone(), &mut piece) else {
                prop_assert!(range.is_empty());
                continue;
            };
            if range.len() == 1 {
                prop_assert_eq!(offload, Offload::NONE);
                verify(&piece, &spec);
                continue;
            }
            prop_assert_eq!(offload.checksum, Some(spec.checksum()));
            let inner = offload.segments.unwrap();
            prop_assert_eq!(inner.wire_frames(piece.len()).len(), range.len());
            for i in range.clone() {
                let j = i - range.start;
                prop_assert_eq!(cut(&piece, inner, j..j + 1, &mut twice), Some(Offload::NONE));
                cut(&super_frame, segments, i..i + 1, &mut once).unwrap();
                prop_assert_eq!(&twice, &once);
            }
        }
    }

    /// Joining adjacent parts gives the same result as cutting them as one.
    #[test]
    fn joined_parts_are_the_piece_that_holds_them(
        spec in any_spec(),
        size in 1u16..2000,
        splits in prop::collection::vec(any::<prop::sample::Index>(), 2..6),
    ) {
        let train = spec.build_partial();
        let segments = spec.segments(size);
        let count = segments.wire_frames(train.len()).len();
        let mut splits: Vec<usize> = splits.iter().map(|split| split.index(count + 1)).collect();
        splits.sort_unstable();
        splits.dedup();
        let mut joiner = Joiner::default();
        let mut out = Vec::new();
        for range in splits.windows(2).map(|pair| pair[0]..pair[1]) {
            let offload = cut(&train, segments, range.clone(), &mut out).expect("a piece");
            let part = TrainPart { train: 7, index: range.start as u16, segments };
            let other = TrainPart { train: 8, ..part };
            let later = TrainPart { index: part.index + 1, ..part };
            prop_assert!(!joiner.append(other, &out) && !joiner.append(later, &out));
            if !joiner.append(part, &out) {
                prop_assert!(!joiner.is_open(), "a part that does not continue the train");
                joiner.start(part, &out, offload);
            }
        }
        prop_assume!(joiner.is_open());
        let offload = cut(&train, segments, splits[0]..splits[splits.len() - 1], &mut out);
        let (bytes, joined) = joiner.finish();
        prop_assert_eq!(bytes, &out[..]);
        prop_assert_eq!(Some(joined), offload);
    }

    #[test]
    fn vnet_headers_survive_the_round(
        spec in any_spec(),
        size in 1u16..3000,
        (partial, cwr_once) in any::<(bool, bool)>(),
    ) {
        let mut frame = spec.build_partial();
        let segments = Segments { cwr_once: cwr_once && !spec.udp, ..spec.segments(size) };
        let offload = Offload {
            checksum: partial.then(|| spec.checksum()),
            segments: (spec.payload.len() > usize::from(size)).then_some(segments),
        };
        let mut header = vnet::encode(offload);
        prop_assert_eq!(vnet::decode(&header, &mut frame), Some(Decoded::Plain(offload)));
        // A wrong header length is corrected.
        header[2..4].fill(0);
        prop_assert_eq!(vnet::decode(&header, &mut frame), Some(Decoded::Plain(offload)));
    }

    #[test]
    fn nothing_panics_on_any_bytes(
        mut frame in prop::collection::vec(any::<u8>(), 0..200),
        header in prop::collection::vec(any::<u8>(), 0..14),
        ether in 0usize..4,
        kind in 0usize..3,
        (header_len, payload_len, from, to) in any::<(u16, u16, u8, u8)>(),
        cwr_once in any::<bool>(),
    ) {
        if frame.len() > 24 {
            let kinds = [[8, 0], [0x86, 0xdd], [0x81, 0], [9, 9]];
            frame[12..14].copy_from_slice(&kinds[ether]);
            frame[14] = if ether == 0 { 0x45 } else { 0x60 };
            frame[23] = 6;
        }
        let _ = vnet::decode(&header, &mut frame);
        let header_len = Headers::parse(&frame).map_or(header_len, |h| h.payload_at as u16);
        let kind = [SegmentKind::TcpV4, SegmentKind::TcpV6, SegmentKind::Udp][kind];
        let segments = Segments { kind, header_len, payload_len, cwr_once };
        let _ = cut(&frame, segments, usize::from(from)..usize::from(to), &mut Vec::new());
        let checksum = Checksum { start: header_len, offset: payload_len };
        let _ = vnet::encode(Offload { checksum: Some(checksum), segments: Some(segments) });
        finish_checksum(&mut frame, checksum);
        finish_if_partial(&mut frame);
    }
}

/// Checks the numbers in segment `i` of `count`, after `sent` bytes.
fn check_numbers(
    frame: &[u8],
    (spec, cwr_once): (&FrameSpec, bool),
    i: usize,
    sent: usize,
    count: usize,
) {
    if !spec.v6 {
        let at = spec.network_at() + 4;
        let id = u16::from_be_bytes([frame[at], frame[at + 1]]);
        assert_eq!(id, spec.id.wrapping_add(i as u16));
    }
    if spec.udp {
        return;
    }
    let at = spec.transport_at();
    let field = [frame[at + 4], frame[at + 5], frame[at + 6], frame[at + 7]];
    let sequence = spec.sequence.wrapping_add(sent as u32);
    assert_eq!(u32::from_be_bytes(field), sequence);
    let mut flags = spec.tcp_flags;
    if i > 0 && cwr_once {
        flags &= !0x80;
    }
    if i + 1 < count {
        flags &= !0x09;
    }
    assert_eq!(frame[at + 13], flags);
}

/// Returns a super-packet of 200,000 bytes as Linux builds it, with or without a jumbo payload
/// option (IPv6).
fn oversized(v6: bool, vlan_tags: usize, jumbo: bool) -> (FrameSpec, Vec<u8>) {
    let spec = FrameSpec {
        v6,
        vlan_tags,
        ..FrameSpec::tcp(200_000)
    };
    let mut frame = spec.build_partial();
    let at = spec.network_at();
    let length_at = if v6 { at + 4 } else { at + 2 };
    frame[length_at..length_at + 2].fill(0);
    if jumbo {
        let length = (frame.len() - at - 40 + 8) as u32;
        let [a, b, c, d] = length.to_be_bytes();
        let next = std::mem::replace(&mut frame[at + 6], 0);
        frame.splice(at + 40..at + 40, [next, 0, 0xc2, 4, a, b, c, d]);
    }
    (spec, frame)
}

#[test]
fn super_packets_longer_than_ip_are_split() {
    for (v6, vlan_tags, jumbo) in [
        (false, 0, false),
        (false, 2, false),
        (true, 0, false),
        (true, 0, true),
        (true, 1, true),
    ] {
        let (spec, mut frame) = oversized(v6, vlan_tags, jumbo);
        let start = strip_jumbo(&mut frame);
        assert_eq!(start, if jumbo { 8 } else { 0 });
        let frame = &frame[start..];
        let segments = spec.segments(1_448);
        let mut splitter = Splitter::of_oversized(frame, segments).expect("it is too long");
        let (mut piece, mut wire, mut of_whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        while !splitter.is_done() {
            let offload = splitter.next(frame, &mut piece).expect("a piece");
            assert!(piece.len() - spec.network_at() <= 65_535);
            assert!(Splitter::of_oversized(&piece, segments).is_none());
            let frames = segments.wire_frames(piece.len()).len();
            assert_eq!(offload.segments.is_some(), frames > 1);
            for index in 0..frames {
                // The last piece has only one segment, so it is already a wire frame.
                match offload.segments {
                    Some(_) => drop(cut(&piece, segments, index..index + 1, &mut wire)),
                    None => wire.clone_from(&piece),
                }
                cut(frame, segments, number..number + 1, &mut of_whole).expect("a frame");
                assert!(wire == of_whole, "frame {number} of {spec:?}");
                verify(&wire, &spec);
                number += 1;
            }
        }
        assert_eq!(number, 200_000usize.div_ceil(1_448));
        assert_eq!(splitter.next(frame, &mut piece), None);
    }
}

#[test]
fn only_the_kernels_own_jumbo_header_is_removed() {
    let (_, mut frame) = oversized(true, 0, true);
    for (at, value) in [(18, 1), (20, 60), (55, 1), (56, 0), (57, 5)] {
        let before = std::mem::replace(&mut frame[at], value);
        assert_eq!(strip_jumbo(&mut frame), 0, "byte {at}");
        frame[at] = before;
    }
    assert_eq!(strip_jumbo(&mut frame[..61]), 0, "it is truncated");
    assert_eq!(strip_jumbo(&mut frame), 8);
    assert_eq!(frame[8 + 20], 6, "TCP comes next");
}

/// Captured TCP packets, with and without a length, become segments that fit.
#[test]
fn tcp_packets_are_cut_to_an_mtu() {
    for (v6, vlan_tags, jumbo, mtu) in [
        (false, 0, false, 1_500),
        (false, 2, false, 576),
        (true, 1, false, 1_280),
        (true, 0, true, 9_000),
    ] {
        let (spec, mut frame) = oversized(v6, vlan_tags, jumbo);
        let room = mtu - (spec.payload_at() - spec.network_at());
        let count = 200_000usize.div_ceil(room);
        let (mut out, mut payload, mut number) = (Vec::new(), Vec::new(), 0);
        let was_cut = cut_tcp(&mut frame, mtu, &mut out, &mut |segment| {
            assert!(segment.len() - spec.network_at() <= mtu);
            check_numbers(segment, (&spec, true), number, payload.len(), count);
            payload.extend(verify(segment, &spec));
            number += 1;
        });
        assert!(was_cut);
        assert_eq!(number, count, "the minimum number of segments");
        assert!(payload == spec.payload);
    }
    let taken: &mut dyn FnMut(&[u8]) = &mut |_| panic!("nothing is to be cut");
    let mut refuses = |frame: &mut [u8], mtu| !cut_tcp(frame, mtu, &mut Vec::new(), taken);
    assert!(refuses(&mut FrameSpec::udp(4_000).build_partial(), 1_500));
    let mut tcp = FrameSpec::tcp(4_000).build_partial();
    assert!(refuses(&mut tcp, 52), "the headers fill the MTU");
    assert!(refuses(&mut tcp[..3_000], 1_500), "the packet is truncated");
}

/// Returns an IPv6 frame with an extension header inserted between IPv6 and TCP.
fn with_extension(frame: &[u8], kind: u8, extension: &[u8]) -> Vec<u8> {
    let mut longer = [&frame[..54], extension, &frame[54..]].concat();
    longer[20] = kind;
    let len = (longer.len() - 54) as u16;
    longer[18..20].copy_from_slice(&len.to_be_bytes());
    longer
}

fn finished(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    assert!(finish_if_partial(&mut frame));
    frame
}

/// A mobile node's checksum covers its home address as the source (RFC 6275, section 11.3.1), both
/// in a complete frame and in its segments.
#[test]
fn the_home_address_is_summed() {
    let direct = FrameSpec::tcp(3_000).v6().build_partial();
    let options = [&[6, 2, 1, 2, 0, 0, 0xc9, 16], &direct[22..38]].concat();
    let mut mobile = with_extension(&direct, 60, &options);
    mobile[22..38].fill(0xee);
    let at = 54 + options.len();
    assert_eq!(finished(&mobile)[at..], finished(&direct)[54..]);
    let segments = |frame: &[u8], mtu, at: usize| {
        let mut segments = Vec::new();
        let take = &mut |segment: &[u8]| segments.push(segment[at..].to_vec());
        assert!(cut_tcp(&mut frame.to_vec(), mtu, &mut Vec::new(), take));
        segments
    };
    let mobile = segments(&mobile, 1_500, at);
    assert_eq!(mobile.len(), 3);
    assert_eq!(mobile, segments(&direct, 1_500 - options.len(), 54));
}

#[test]
fn the_final_address_of_a_segment_route_is_summed() {
    // Segment routing (type 4): the packet travels to its next segment, but its checksum covers the
    // last segment, which is first in the list.
    let direct = FrameSpec::tcp(100).v6().build_partial();
    let routing = [&[6, 4, 4, 1, 1, 0, 0, 0], &direct[38..54], &[0xee; 16]].concat();
    let mut routed = with_extension(&direct, 43, &routing);
    routed[38..54].fill(0xee);
    let at = 54 + routing.len();
    assert_eq!(finished(&routed)[at..], finished(&direct)[54..]);
}

#[test]
fn fragments_and_datagrams_without_a_checksum_stay_unchanged() {
    let mut frame = FrameSpec::tcp(64).build_partial();
    frame[20] |= 0x20;
    assert!(!finish_if_partial(&mut frame), "a first fragment");

    let spec = FrameSpec::udp(3000);
    let mut frame = spec.build_partial();
    frame[spec.checksum_at()..spec.checksum_at() + 2].fill(0);
    assert!(!finish_if_partial(&mut frame));
    let mut out = Vec::new();
    let segments = spec.segments(1000);
    let offload = cut(&frame, segments, 0..2, &mut out).unwrap();
    assert_eq!(offload.checksum, None, "still none in a piece");
    cut(&frame, segments, 2..3, &mut out).unwrap();
    assert_eq!(out[40..42], [0, 0], "still none in a wire frame");
}

#[test]
fn a_computed_zero_is_written_as_its_other_form() {
    let mut spec = FrameSpec::udp(2);
    spec.payload = vec![0, 0];
    let mut frame = spec.build_partial();
    finish_checksum(&mut frame, spec.checksum());
    // A payload equal to the checksum over a zero payload makes the sum all ones and the checksum
    // zero.
    let so_far = [frame[40], frame[41]];
    spec.payload = so_far.to_vec();
    let mut frame = spec.build_partial();
    finish_checksum(&mut frame, spec.checksum());
    assert_eq!(frame[40..42], [0xff, 0xff]);
}

#[test]
fn contradictory_vnet_headers_are_refused() {
    let spec = FrameSpec::tcp(3000);
    let mut frame = spec.build_partial();
    let segments = spec.segments(1000);
    let offload = Offload {
        checksum: Some(spec.checksum()),
        segments: Some(segments),
    };
    let good = vnet::encode(offload);
    let cwr_once = Offload {
        segments: Some(Segments {
            cwr_once: true,
            ..segments
        }),
        ..offload
    };
    let mut with = |at: usize, value: u8| {
        let mut header = good;
        header[at..at + 1].fill(value);
        vnet::decode(&header, &mut frame)
    };
    let ecn = with(1, 0x81);
    assert_eq!(
        ecn,
        Some(Decoded::Plain(cwr_once)),
        "the ECN bit is not part of the kind"
    );
    assert_eq!(with(6, 33), None, "the checksum of another header");
    assert_eq!(with(1, 3), None);
    assert_eq!(with(1, 4), None, "not IPv6");
    assert_eq!(with(1, 5), None, "not UDP");
    assert_eq!(with(7, 0xff), None, "checksum beyond the frame");
    let short = vnet::decode(&good[..9], &mut frame);
    assert_eq!(short, None);
}
