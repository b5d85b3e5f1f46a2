//! The virtio-net header: unfinished work on a frame from a TAP device or packet socket.
//!
//! The layout is that of `struct virtio_net_hdr` (virtio 1.2 §5.1.6), in host byte order, as Linux
//! uses it on TAP devices and packet sockets: flags and gso_type (one byte each), then hdr_len,
//! gso_size, csum_start and csum_offset (two bytes each).

use super::offload::{
    Checksum, Headers, Offload, SegmentKind, Segments, find_inner, finish_checksum,
};

/// Header length in bytes.
pub const LEN: usize = 10;

const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The offload described by a virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A frame, or a super-packet that other ports accept.
    Plain(Offload),
    /// A tunnelled super-packet, which [`Splitter::of_tunnelled`] splits.
    ///
    /// [`Splitter::of_tunnelled`]: super::offload::Splitter::of_tunnelled
    Tunnelled(Segments),
}

/// Decodes the header before `frame`.
///
/// The sender's `hdr_len` is a hint and often wrong or zero, so the header length comes from the
/// frame. A verified checksum (DATA_VALID) has no meaning for a forwarded frame and is dropped. A
/// super-packet of at most one segment is a plain frame.
///
/// The header describes one TCP or UDP packet, but Linux also uses it for other offloads: tunnelled
/// packets, without mention of the tunnel, and SCTP's CRC32c. Such checksums are completed here;
/// such super-packets must be split.
///
/// Returns `None` if the header contradicts itself or the frame, which then cannot be forwarded.
#[inline]
pub fn decode(header: &[u8], frame: &mut [u8]) -> Option<Decoded> {
    let header = header.first_chunk::<LEN>()?;
    // Most frames have no unfinished work, which bytes 0 and 1 indicate.
    if header[0] & FLAG_NEEDS_CSUM == 0 && header[1] == GSO_NONE {
        return Some(Decoded::Plain(Offload::NONE));
    }
    decode_undone(header, frame)
}

fn decode_undone(header: &[u8; LEN], frame: &mut [u8]) -> Option<Decoded> {
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let (start, offset, len) = (field(6), field(8), frame.len());
    let checksum = (header[0] & FLAG_NEEDS_CSUM != 0).then_some(Checksum { start, offset });
    if checksum.is_some() && usize::from(start) + usize::from(offset) + 2 > len {
        return None;
    }
    let outermost = Headers::parse(frame);
    let kind = match header[1] & !GSO_ECN {
        GSO_NONE => return Some(Decoded::Plain(plain(frame, outermost, checksum))),
        GSO_TCP_V4 => SegmentKind::TcpV4,
        GSO_TCP_V6 => SegmentKind::TcpV6,
        GSO_UDP_L4 => SegmentKind::Udp,
        // Some kernels use 3 for datagrams that IP must fragment, but only on request.
        _ => return None,
    };
    let payload_len = field(4);
    if payload_len == 0 {
        return None;
    }
    let fits = |headers: &Headers| {
        kind.matches(headers) && checksum.is_none_or(|sum| sum == headers.checksum())
    };
    let plain_train = outermost.filter(fits);
    let inner = || find_inner(frame, fits).filter(|_| checksum.is_some());
    let header_len = plain_train
        .or_else(|| inner().map(|(headers, _)| headers))
        .and_then(|headers| u16::try_from(headers.payload_at).ok())?;
    if frame.len() - usize::from(header_len) <= usize::from(payload_len) {
        return Some(Decoded::Plain(plain(frame, outermost, checksum)));
    }
    let segments = Segments {
        kind,
        header_len,
        payload_len,
        cwr_once: header[1] & GSO_ECN != 0 && kind != SegmentKind::Udp,
    };
    Some(match plain_train {
        Some(_) => Decoded::Plain(Offload {
            checksum,
            segments: Some(segments),
        }),
        None => Decoded::Tunnelled(segments),
    })
}

/// Returns a wire frame's remaining offload. Completes the checksum unless it belongs to the
/// outermost TCP or UDP header.
fn plain(frame: &mut [u8], outermost: Option<Headers>, checksum: Option<Checksum>) -> Offload {
    let is_outermost = |sum: &Checksum| outermost.is_some_and(|headers| headers.checksum() == *sum);
    if let Some(checksum) = checksum.filter(|sum| !is_outermost(sum)) {
        finish_checksum(frame, checksum);
    }
    Offload {
        checksum: checksum.filter(is_outermost),
        segments: None,
    }
}

/// Encodes an offload's header.
#[inline]
pub fn encode(offload: Offload) -> [u8; LEN] {
    let mut header = [0; LEN];
    let mut put = |at: usize, value: u16| {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    };
    let mut flags = 0;
    let mut gso = GSO_NONE;
    if let Some(checksum) = offload.checksum {
        flags = FLAG_NEEDS_CSUM;
        put(6, checksum.start);
        put(8, checksum.offset);
    }
    if let Some(segments) = offload.segments {
        put(2, segments.header_len);
        put(4, segments.payload_len);
        gso = match segments.kind {
            SegmentKind::TcpV4 => GSO_TCP_V4,
            SegmentKind::TcpV6 => GSO_TCP_V6,
            SegmentKind::Udp => GSO_UDP_L4,
        };
        if segments.cwr_once {
            gso |= GSO_ECN;
        }
    }
    header[0] = flags;
    header[1] = gso;
    header
}
