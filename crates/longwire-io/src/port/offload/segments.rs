//! Segments super-packets into wire frames.

use std::ops::Range;

use longwire_packet::header::IpVersion;

use super::checksum::{
    Sum, has_no_checksum, pseudo_header, write_ipv4_checksum, write_transport_checksum,
};
use super::headers::{Headers, IpHeader, Transport, be16};
use super::tunnel::{InnerBytes, Tunnels};
use super::{Checksum, Offload, SegmentKind, Segments};

/// TCP flags set on the last segment only: FIN and PSH.
pub(super) const TCP_LAST_ONLY: u8 = 0x01 | 0x08;
/// Congestion Window Reduced, in the TCP flags byte.
const TCP_CWR: u8 = 0x80;

impl Segments {
    /// Returns the wire frame lengths of a super-packet of `total_len` bytes, in order. Their
    /// payloads add up to the super-packet's.
    pub fn wire_frames(&self, total_len: usize) -> WireFrames {
        let header_len = usize::from(self.header_len);
        WireFrames {
            header_len,
            payload_len: usize::from(self.payload_len).max(1),
            left: total_len.saturating_sub(header_len),
            // Headers alone still form one frame.
            empty: total_len <= header_len,
        }
    }
}

/// Iterator over wire frame lengths; see [`Segments::wire_frames`].
#[derive(Clone, Debug)]
pub struct WireFrames {
    header_len: usize,
    payload_len: usize,
    left: usize,
    empty: bool,
}

impl Iterator for WireFrames {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let payload = self.left.min(self.payload_len);
        if payload == 0 && !self.empty {
            return None;
        }
        self.empty = false;
        self.left -= payload;
        Some(self.header_len + payload)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let frames = self.left.div_ceil(self.payload_len) + usize::from(self.empty);
        (frames, Some(frames))
    }
}

impl ExactSizeIterator for WireFrames {}

/// Replaces the contents of `out` with the frame that carries the segments `range` (counted from 0)
/// of a super-packet.
///
/// One segment becomes a wire frame with complete checksums. Several become a shorter super-packet
/// with a partial checksum, which the returned offload describes. Headers match those of the
/// kernel's segmentation: lengths are the piece's; the IPv4 identification and the TCP sequence
/// number advance to the piece's first segment; FIN and PSH are only on the last segment; and CWR
/// is only on the first if [`Segments::cwr_once`].
///
/// `None` if `range` is empty or extends beyond the last segment, or if the frame's headers
/// contradict `segments`.
pub fn cut(
    super_frame: &[u8],
    segments: Segments,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Option<Offload> {
    SuperPacket::of(super_frame, segments)?.cut(range, out)
}

/// A super-packet whose headers match its segments.
#[derive(Clone, Copy, Debug)]
pub struct SuperPacket<'a> {
    bytes: &'a [u8],
    segments: Segments,
    headers: Headers,
}

impl<'a> SuperPacket<'a> {
    /// Parses the headers of a super-packet; `None` if they contradict `segments`.
    pub fn of(bytes: &'a [u8], segments: Segments) -> Option<SuperPacket<'a>> {
        let headers = Headers::parse(bytes).filter(|headers| segments.fit(headers))?;
        Some(SuperPacket {
            bytes,
            segments,
            headers,
        })
    }

    /// See [`cut`].
    pub fn cut(&self, range: Range<usize>, out: &mut Vec<u8>) -> Option<Offload> {
        let is_wire_frame = range.len() == 1;
        let offload = self.cut_unfinished(range, out)?;
        if !is_wire_frame {
            return Some(offload);
        }
        if !has_no_checksum(out, &self.headers) {
            write_transport_checksum(out, &self.headers);
        }
        Some(Offload::NONE)
    }

    /// Like [`SuperPacket::cut`], but leaves a wire frame's checksum partial. That saves a pass
    /// over its bytes if the next device completes it.
    pub fn cut_unfinished(&self, range: Range<usize>, out: &mut Vec<u8>) -> Option<Offload> {
        cut_piece(self.bytes, self.segments, (&self.headers, None), range, out)
    }
}

/// Cuts a frame's TCP packet into segments with IP packets of at most `mtu` bytes. Passes each to
/// `take` as a complete wire frame; `out` is scratch memory. Returns `false` if the frame contains
/// no complete TCP packet or its headers exceed the MTU.
pub fn cut_tcp(
    frame: &mut [u8],
    mtu: usize,
    out: &mut Vec<u8>,
    take: &mut dyn FnMut(&[u8]),
) -> bool {
    let start = strip_jumbo(frame);
    let frame = &frame[start..];
    let segments = Headers::parse(frame).and_then(|headers| {
        let kind = match (headers.transport, headers.ip.network) {
            (Transport::Tcp, IpVersion::V4) => SegmentKind::TcpV4,
            (Transport::Tcp, IpVersion::V6) => SegmentKind::TcpV6,
            (Transport::Udp, _) => return None,
        };
        let room = mtu.checked_sub(headers.payload_at - headers.ip.at)?;
        let payload_len = u16::try_from(room).ok().filter(|len| *len > 0)?;
        Some(Segments {
            kind,
            header_len: u16::try_from(headers.payload_at).ok()?,
            payload_len,
            cwr_once: true,
        })
    });
    let Some(segments) = segments else {
        return false;
    };
    for index in 0..segments.wire_frames(frame.len()).len() {
        if cut(frame, segments, index..index + 1, out).is_some() {
            take(out);
        }
    }
    true
}

/// Like [`cut`], without completing checksums, for a packet with these headers that may be
/// tunnelled.
pub(super) fn cut_piece(
    super_frame: &[u8],
    segments: Segments,
    (headers, tunnels): (&Headers, Option<&Tunnels>),
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Option<Offload> {
    let count = segments.wire_frames(super_frame.len()).len();
    if range.is_empty() || range.end > count {
        return None;
    }
    let payload_len = usize::from(segments.payload_len).max(1);
    let payload = &super_frame[headers.payload_at..];
    let from = range.start * payload_len;
    let to = (range.end * payload_len).min(payload.len());
    out.clear();
    out.extend_from_slice(&super_frame[..headers.payload_at]);
    out.extend_from_slice(&payload[from..to]);

    write_network_header(out, &headers.ip, range.start);
    write_transport_header(out, headers, segments, (range.start, range.end == count));
    let checksum = write_unfinished_checksum(out, headers);
    if let Some(tunnels) = tunnels {
        let start = headers.transport_at();
        let sum = match checksum {
            // With a complete checksum, the sum is the complement of the pseudo-header's.
            Some(_) => !be16(out, headers.checksum_at())?,
            None => Sum::default().add(&out[start..]).fold(),
        };
        tunnels.write(out, InnerBytes { start, sum }, range.start);
    }
    Some(Offload {
        checksum,
        segments: (range.len() > 1).then_some(segments),
    })
}

pub(super) fn write_network_header(frame: &mut [u8], ip: &IpHeader, segment: usize) {
    let at = ip.at;
    match ip.network {
        IpVersion::V4 => {
            put_len(frame, at + 2, frame.len() - at);
            let id = be16(frame, at + 4).unwrap_or(0);
            // The identification may wrap around (RFC 6864).
            let id = id.wrapping_add(segment as u16);
            frame[at + 4..at + 6].copy_from_slice(&id.to_be_bytes());
            write_ipv4_checksum(frame, at);
        }
        IpVersion::V6 => put_len(frame, at + 4, frame.len() - at - 40),
    }
}

fn write_transport_header(
    frame: &mut [u8],
    headers: &Headers,
    segments: Segments,
    (segment, is_last): (usize, bool),
) {
    let at = headers.transport_at();
    match headers.transport {
        Transport::Udp => put_len(frame, at + 4, frame.len() - at),
        Transport::Tcp => {
            let field = [frame[at + 4], frame[at + 5], frame[at + 6], frame[at + 7]];
            let before = segment * usize::from(segments.payload_len).max(1);
            let sequence = u32::from_be_bytes(field).wrapping_add(before as u32);
            frame[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut frame[at + 13];
            if !is_last {
                *flags &= !TCP_LAST_ONLY;
            }
            if segment > 0 && segments.cwr_once {
                *flags &= !TCP_CWR;
            }
        }
    }
}

/// Leaves the checksum to the next device: writes the pseudo-header sum of the whole piece. The sum
/// is computed from scratch, so the state of the super-packet's checksum does not matter.
pub(super) fn write_unfinished_checksum(frame: &mut [u8], headers: &Headers) -> Option<Checksum> {
    if has_no_checksum(frame, headers) {
        return None;
    }
    let sum = pseudo_header(&headers.ip, frame, frame.len() - headers.transport_at()).fold();
    let at = headers.checksum_at();
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(headers.checksum())
}

/// Writes a length field. On overflow writes zero, the kernel's mark of super-packets above 64 KiB.
pub(super) fn put_len(frame: &mut [u8], at: usize, len: usize) {
    let len = u16::try_from(len).unwrap_or(0);
    frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
}

/// Length of an IPv6 header in bytes.
const IPV6: usize = 40;
/// Length of a hop-by-hop header that contains only the jumbo payload option.
const JUMBO: usize = 8;
/// Offset of the next header number in an IPv6 header.
const NEXT_HEADER: usize = 6;
/// Protocol number of a hop-by-hop header.
const HOP_BY_HOP: u8 = 0;
/// Type and length of the jumbo payload option.
const JUMBO_OPTION: [u8; 2] = [0xc2, 4];

/// Removes the hop-by-hop header that the kernel adds to a long IPv6 super-packet. Returns the new
/// start of the frame in `frame`; 0 without that header. Bytes after the header stay in place.
pub fn strip_jumbo(frame: &mut [u8]) -> usize {
    let network_at = longwire_packet::frame::mac_header_len(frame) as usize;
    let Some(header) = frame.get(network_at..network_at + IPV6 + JUMBO) else {
        return 0;
    };
    let is_v6 = frame[network_at - 2..network_at] == [0x86, 0xdd] && header[0] >> 4 == 6;
    let without_len = header[4..6] == [0, 0] && header[NEXT_HEADER] == HOP_BY_HOP;
    let extension = &header[IPV6..];
    if !is_v6 || !without_len || extension[1] != 0 || extension[2..4] != JUMBO_OPTION {
        return 0;
    }
    frame[network_at + NEXT_HEADER] = extension[0];
    frame.copy_within(..network_at + IPV6, JUMBO);
    JUMBO
}
