//! Partial checksums and segmentation of tunnelled packets, compared with a naive builder and
//! verifier.

use longwire_io::Offload;
use longwire_io::port::offload::{
    Checksum, SegmentKind, Segments, Splitter, cut, finish_if_partial,
};
use longwire_io::port::vnet::{self, Decoded};
use longwire_testbed::support::frames::{crc32c, sum};
use proptest::prelude::*;

use crate::common::frames::{FrameSpec, pseudo_sum, put_sum, verify};
use crate::offload::any_spec;

/// A tunnel protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Vxlan,
    VxlanGpe,
    Geneve,
    /// Geneve with options, with an IP packet directly inside.
    GenevePacket,
    Gue,
    Fou,
    FouGre,
    /// GRE with a key.
    Gre,
    Gretap,
    IpInIp,
    /// MPLS labels inside IP.
    MplsInIp,
    /// MPLS labels directly after Ethernet, without an outer IP header.
    Mpls,
}

const CARRIERS: [Carrier; 12] = [
    Carrier::Vxlan,
    Carrier::VxlanGpe,
    Carrier::Geneve,
    Carrier::GenevePacket,
    Carrier::Gue,
    Carrier::Fou,
    Carrier::FouGre,
    Carrier::Gre,
    Carrier::Gretap,
    Carrier::IpInIp,
    Carrier::MplsInIp,
    Carrier::Mpls,
];

#[derive(Clone, Copy, Debug)]
struct Tunnel {
    carrier: Carrier,
    /// Whether the outer IP header is IPv6.
    v6: bool,
    /// Whether UDP and GRE have a checksum.
    sums: bool,
}

impl Tunnel {
    fn v4(carrier: Carrier, sums: bool) -> Tunnel {
        Tunnel {
            carrier,
            v6: false,
            sums,
        }
    }

    fn is_udp(self) -> bool {
        use Carrier::*;
        matches!(
            self.carrier,
            Vxlan | VxlanGpe | Geneve | GenevePacket | Gue | Fou | FouGre
        )
    }

    fn is_gre(self) -> bool {
        matches!(self.carrier, Carrier::Gre | Carrier::Gretap)
    }

    /// Returns the tunnel header for a packet with this EtherType.
    fn header(self, kind: [u8; 2]) -> Vec<u8> {
        let protocol = if kind == [0x08, 0x00] { 4 } else { 41 };
        let next = if protocol == 4 { 1 } else { 2 };
        let checked = if self.sums { 0x80 } else { 0 };
        let gre = |flags: u8, kind: [u8; 2]| {
            let mut header = vec![flags | checked, 0, kind[0], kind[1]];
            header.extend(vec![0; if self.sums { 4 } else { 0 }]);
            header
        };
        match self.carrier {
            Carrier::Vxlan => vec![0x08, 0, 0, 0, 0, 0, 5, 0],
            Carrier::VxlanGpe => vec![0x0c, 0, 0, next, 0, 0, 5, 0],
            Carrier::Geneve => vec![0, 0, 0x65, 0x58, 0, 0, 5, 0],
            Carrier::GenevePacket => {
                let mut header = vec![3, 0x40, kind[0], kind[1], 0, 0, 5, 0];
                header.extend([1, 2, 0x83, 2, 0x45, 0x45, 0x45, 0x45, 0x60, 0, 0, 0]);
                header
            }
            Carrier::Gue => vec![1, protocol, 0, 0, 9, 9, 9, 9],
            Carrier::Fou => Vec::new(),
            Carrier::FouGre => vec![0, 0, kind[0], kind[1]],
            Carrier::Gre => [gre(0x20, kind), vec![0, 0, 0, 7]].concat(),
            Carrier::Gretap => gre(0, [0x65, 0x58]),
            Carrier::IpInIp => Vec::new(),
            Carrier::MplsInIp | Carrier::Mpls => vec![0, 1, 0x40, 64, 0, 2, 0x41, 64],
        }
    }

    fn protocol(self, kind: [u8; 2]) -> u8 {
        match self.carrier {
            _ if self.is_udp() => 17,
            _ if self.is_gre() => 47,
            Carrier::MplsInIp => 137,
            _ if kind == [0x08, 0x00] => 4,
            _ => 41,
        }
    }

    fn carries_ethernet(self) -> bool {
        use Carrier::*;
        matches!(self.carrier, Vxlan | Geneve | Gretap)
    }

    fn ip_len(self) -> usize {
        match (self.carrier, self.v6) {
            (Carrier::Mpls, _) => 0,
            (_, true) => 40,
            (_, false) => 20,
        }
    }

    /// Puts a frame with a partial checksum into the tunnel, as the kernel does: outer sums are
    /// those of the completed frame.
    fn wrap(self, frame: &[u8], inner: &FrameSpec) -> Vec<u8> {
        let network_at = inner.network_at();
        let kind = [frame[network_at - 2], frame[network_at - 1]];
        let packet = if self.carries_ethernet() {
            frame
        } else {
            &frame[network_at..]
        };
        let mut body = self.header(kind);
        body.extend(packet);
        if self.is_udp() {
            let len = (body.len() + 8) as u16;
            let sum = u8::from(self.sums);
            let [high, low] = len.to_be_bytes();
            body.splice(0..0, [0xc0, 1, 0x12, 0xb5, high, low, 0, sum]);
        }
        let mut out = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2];
        if self.carrier == Carrier::Mpls {
            out.extend([0x88, 0x47]);
        } else if self.v6 {
            out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            out.extend((body.len() as u16).to_be_bytes());
            out.extend([self.protocol(kind), 64]);
            out.extend([0xfd; 15]);
            out.extend([7; 17]);
        } else {
            out.extend([0x08, 0x00, 0x45, 0]);
            out.extend((body.len() as u16 + 20).to_be_bytes());
            let protocol = self.protocol(kind);
            out.extend([0xff, 0xfe, 0, 0, 64, protocol, 0, 0]);
            out.extend([10, 9, 0, 1, 10, 9, 0, 2]);
            put_sum(&mut out, 14..34, 24);
        }
        out.extend(&body);
        self.write_sum(&mut out, frame, inner);
        out
    }

    fn sum_at(self) -> usize {
        14 + self.ip_len() + if self.is_udp() { 6 } else { 4 }
    }

    fn write_sum(self, out: &mut [u8], frame: &[u8], inner: &FrameSpec) {
        if !self.sums || !(self.is_udp() || self.is_gre()) {
            return;
        }
        // Compute outer sums from a copy with the inner checksum completed.
        let mut finished = out.to_vec();
        let shift = out.len() - frame.len();
        let start = inner.transport_at() + shift;
        let at = inner.checksum_at() + shift;
        let sum = !sum(&[&finished[start..]]);
        finished[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let at = self.sum_at();
        finished[at..at + 2].fill(0);
        let sum = !self.sum(&finished);
        out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Returns the sum that the tunnel's checksum covers.
    fn sum(self, frame: &[u8]) -> u16 {
        let begin = 14 + self.ip_len();
        let pseudo = if self.is_udp() {
            pseudo_sum(frame, 14, begin, 17)
        } else {
            0
        };
        sum(&[&pseudo.to_be_bytes(), &frame[begin..]])
    }

    /// Checks the headers around a completed frame, and returns the tunnelled frame.
    fn unwrap(self, frame: &[u8], inner: &FrameSpec, number: usize) -> Vec<u8> {
        let field = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        let begin = 14 + self.ip_len();
        if self.carrier == Carrier::Mpls {
        } else if self.v6 {
            assert_eq!(field(18), frame.len() - 54, "outer length");
        } else {
            assert_eq!(field(16), frame.len() - 14, "outer length");
            let id = (0xfffe + number) & 0xffff;
            assert_eq!(field(18), id, "outer identification");
            assert_eq!(sum(&[&frame[14..34]]), 0xffff, "outer header");
        }
        let summed = self.sums && (self.is_udp() || self.is_gre());
        if self.is_udp() {
            assert_eq!(field(begin + 4), frame.len() - begin, "UDP length");
            assert_eq!(field(begin + 6) != 0, self.sums);
        }
        if summed {
            assert_eq!(self.sum(frame), 0xffff, "the sum of the tunnel");
        }
        let kind = if inner.v6 { [0x86, 0xdd] } else { [8, 0] };
        let at = begin + if self.is_udp() { 8 } else { 0 } + self.header(kind).len();
        if self.carries_ethernet() {
            return frame[at..].to_vec();
        }
        let mut whole = inner.build_partial()[..inner.network_at()].to_vec();
        whole.extend(&frame[at..]);
        whole
    }
}

fn any_tunnel() -> impl Strategy<Value = Tunnel> {
    let carrier = prop::sample::select(&CARRIERS[..]);
    (carrier, any::<bool>(), any::<bool>()).prop_map(|(carrier, v6, sums)| Tunnel {
        carrier,
        v6,
        sums,
    })
}

/// Returns the checksum position of a frame moved by `shift` bytes into a tunnel.
fn shifted(checksum: Checksum, shift: usize) -> Checksum {
    Checksum {
        start: checksum.start + shift as u16,
        ..checksum
    }
}

/// Returns a tunnelled super-packet with `size` bytes per segment, and Linux's virtio-net header
/// for it.
fn train(tunnel: Tunnel, spec: &FrameSpec, size: u16) -> (Vec<u8>, [u8; vnet::LEN]) {
    let frame = spec.build_partial();
    let wrapped = tunnel.wrap(&frame, spec);
    let shift = wrapped.len() - frame.len();
    let segments = spec.segments(size);
    let header = vnet::encode(Offload {
        checksum: Some(shifted(spec.checksum(), shift)),
        segments: Some(Segments {
            // Linux gives the length of the whole linear part, a hint rather than a header length.
            header_len: 0,
            ..segments
        }),
    });
    (wrapped, header)
}

/// Like [`train`], decoded.
fn decoded_train(tunnel: Tunnel, spec: &FrameSpec, size: u16) -> (Vec<u8>, Segments) {
    let (mut frame, header) = train(tunnel, spec, size);
    match vnet::decode(&header, &mut frame) {
        Some(Decoded::Tunnelled(segments)) => (frame, segments),
        other => panic!("{other:?}"),
    }
}

/// Splits a train and cuts its pieces into wire frames.
fn wire_frames(frame: &[u8], segments: Segments) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::of_tunnelled(frame, segments).expect("a train");
    let (mut piece, mut frames) = (Vec::new(), Vec::new());
    while !splitter.is_done() {
        let offload = splitter.next(frame, &mut piece).expect("a piece");
        let Some(datagrams) = offload.segments else {
            assert_eq!(offload, Offload::NONE);
            frames.push(piece.clone());
            continue;
        };
        assert_eq!(datagrams.kind, SegmentKind::Udp);
        assert!(piece.len() <= 14 + 65_535);
        let again = vnet::decode(&vnet::encode(offload), &mut piece);
        assert_eq!(again, Some(Decoded::Plain(offload)), "ports accept it");
        for number in 0..datagrams.wire_frames(piece.len()).len() {
            let mut wire = Vec::new();
            cut(&piece, datagrams, number..number + 1, &mut wire).expect("a wire frame");
            frames.push(wire);
        }
    }
    frames
}

proptest! {
    /// A virtio-net header describes the tunnelled packet as if there were no tunnel.
    #[test]
    fn trains_in_tunnels_are_split_whole(
        tunnel in any_tunnel(),
        spec in any_spec(),
        size in 1u16..3000,
    ) {
        prop_assume!(spec.payload.len() > usize::from(size));
        let (frame, segments) = decoded_train(tunnel, &spec, size);
        let frames = wire_frames(&frame, segments);
        let lens: Vec<usize> = segments.wire_frames(frame.len()).collect();
        let found: Vec<usize> = frames.iter().map(Vec::len).collect();
        prop_assert_eq!(found, lens);
        let mut payload = Vec::new();
        for (number, wire) in frames.iter().enumerate() {
            payload.extend(verify(&tunnel.unwrap(wire, &spec, number), &spec));
            let mut again = wire.clone();
            finish_if_partial(&mut again);
            prop_assert_eq!(&again, wire, "the checksums are complete");
        }
        prop_assert_eq!(payload, spec.payload);
    }

    #[test]
    fn single_frames_in_tunnels_are_finished(tunnel in any_tunnel(), spec in any_spec()) {
        let frame = spec.build_partial();
        let wrapped = tunnel.wrap(&frame, &spec);
        let shift = wrapped.len() - frame.len();
        let checksum = Some(shifted(spec.checksum(), shift));
        let header = vnet::encode(Offload { checksum, segments: None });
        let mut told = wrapped.clone();
        prop_assert_eq!(vnet::decode(&header, &mut told), Some(Decoded::Plain(Offload::NONE)));
        verify(&tunnel.unwrap(&told, &spec, 0), &spec);

        let mut found = wrapped;
        prop_assert!(finish_if_partial(&mut found));
        prop_assert_eq!(&found, &told);
        finish_if_partial(&mut found);
        prop_assert_eq!(&found, &told, "the function is idempotent");
    }

    /// Two nested tunnels.
    #[test]
    fn nested_tunnels_are_parsed(
        (outer, inner) in (any_tunnel(), any_tunnel()),
        spec in any_spec(),
    ) {
        prop_assume!(outer.carries_ethernet() && inner.carrier != Carrier::Mpls);
        let frame = spec.build_partial();
        let once = inner.wrap(&frame, &spec);
        // The outer sums are those of the completed packet.
        let around = FrameSpec::tcp(0);
        let mut finished = once.clone();
        prop_assert!(finish_if_partial(&mut finished));
        let outer = Tunnel { sums: false, ..outer };
        let mut twice = outer.wrap(&once, &around);
        prop_assert!(finish_if_partial(&mut twice));
        prop_assert_eq!(&twice[twice.len() - finished.len()..], &finished[..]);
    }

    /// The payload of a datagram with a checksum is user data, even if it looks like a packet.
    #[test]
    fn a_quoted_packet_stays_unchanged(tunnel in any_tunnel(), spec in any_spec()) {
        prop_assume!(tunnel.is_udp());
        let tunnel = Tunnel { sums: true, ..tunnel };
        let frame = spec.build_partial();
        let mut wrapped = tunnel.wrap(&frame, &spec);
        let at = tunnel.sum_at();
        wrapped[at..at + 2].fill(0);
        // The outer checksum covers the payload as is, with the inner checksum still incomplete. A
        // tunnel's would cover the completed packet.
        let sum = !tunnel.sum(&wrapped);
        let sum = if sum == 0 { 0xffff } else { sum };
        prop_assert_eq!(wrapped[at..at + 2].to_vec(), [0, 0]);
        wrapped[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let before = wrapped.clone();
        finish_if_partial(&mut wrapped);
        prop_assert_eq!(wrapped, before);
    }

    #[test]
    fn a_checksum_of_no_header_is_refused(spec in any_spec(), tunnel in any_tunnel(), by in 1usize..8) {
        let size = (spec.payload.len() / 2) as u16;
        prop_assume!(size > 0);
        let (mut frame, mut header) = train(tunnel, &spec, size);
        // Move the checksum to an offset at which no header has one.
        let start = u16::from_ne_bytes([header[6], header[7]]) - by as u16;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        prop_assert!(vnet::decode(&header, &mut frame).is_none());
    }
}

/// 64 KiB plus tunnel headers per segment exceed one IP packet.
#[test]
fn long_trains_are_split() {
    let spec = FrameSpec::tcp(65_000);
    let (frame, segments) = decoded_train(Tunnel::v4(Carrier::Vxlan, true), &spec, 1_398);
    let mut splitter = Splitter::of_tunnelled(&frame, segments).expect("a train");
    let (mut piece, mut pieces) = (Vec::new(), 0);
    while !splitter.is_done() {
        splitter.next(&frame, &mut piece).expect("a piece");
        pieces += 1;
    }
    assert_eq!(pieces, 2);
    let frames = wire_frames(&frame, segments);
    assert_eq!(frames.len(), 65_000usize.div_ceil(1_398));
}

/// If GRE numbers its packets, all frames cut from one would have the same number.
#[test]
fn numbered_packets_are_not_cut() {
    let spec = FrameSpec::tcp(3_000);
    let (mut frame, header) = train(Tunnel::v4(Carrier::Gre, false), &spec, 1_000);
    // Set the flag for a sequence number instead of the one for a key.
    frame[34] = 0x10;
    assert!(vnet::decode(&header, &mut frame).is_none());
    frame[34] = 0x20;
    assert!(vnet::decode(&header, &mut frame).is_some());
}

/// Returns an SCTP packet with a zero checksum, as its sender leaves it, and the offset of its
/// CRC32c.
fn sctp(v6: bool) -> (Vec<u8>, usize) {
    let spec = FrameSpec {
        v6,
        udp: true,
        ..FrameSpec::tcp(40)
    };
    let mut frame = spec.build_partial();
    frame[if v6 { 20 } else { 23 }] = 132;
    if !v6 {
        put_sum(&mut frame, 14..34, 24);
    }
    let at = spec.transport_at() + 8;
    frame[at..at + 4].fill(0);
    (frame, at)
}

#[test]
fn sctp_gets_crc32c() {
    for v6 in [false, true] {
        let (frame, at) = sctp(v6);
        let start = at - 8;
        let mut expected = frame.clone();
        let sum = crc32c(&frame[start..]).to_le_bytes();
        expected[at..at + 4].copy_from_slice(&sum);
        let header = vnet::encode(Offload {
            checksum: Some(Checksum {
                start: start as u16,
                offset: 8,
            }),
            segments: None,
        });
        let mut told = frame.clone();
        let plain = Some(Decoded::Plain(Offload::NONE));
        assert_eq!(vnet::decode(&header, &mut told), plain);
        assert_eq!(told, expected);
        let mut found = frame;
        assert!(finish_if_partial(&mut found));
        assert_eq!(found, expected);
        assert!(!finish_if_partial(&mut found), "the checksum is complete");
        // Padding is not part of the packet.
        found[at..at + 4].fill(0);
        found.extend([0xee; 6]);
        assert!(finish_if_partial(&mut found));
        assert_eq!(found[..expected.len()], expected[..]);
    }
}
