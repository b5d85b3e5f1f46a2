//! The virtio-net header: the work that a sender left unfinished in a frame of a TAP
//! device or a packet socket.
//!
//! Layout of `struct virtio_net_hdr` (virtio 1.2 §5.1.6; host byte order, as Linux uses
//! it on TAP devices and packet sockets): flags, gso_type (a byte each), hdr_len,
//! gso_size, csum_start, csum_offset (two bytes each).

use super::offload::{Checksum, Headers, Offload, SegmentKind, Segments};

/// Bytes of the header.
pub const LEN: usize = 10;

const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_UDP_FRAGMENTS: u8 = 3;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Congestion Window Reduced, in the flags byte of a TCP header.
const TCP_CWR: u8 = 0x80;

/// An invalid or unsupported virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VnetError {
    /// The header is truncated.
    #[error("a virtio-net header of {0} bytes, not 10")]
    Short(usize),
    /// The checksum would lie outside of the frame.
    #[error("a checksum at {start} + {offset} in a frame of {len} bytes")]
    Checksum {
        /// Start of the summed bytes.
        start: u16,
        /// Position of the checksum from there.
        offset: u16,
        /// Length of the frame.
        len: usize,
    },
    /// An unsupported kind of segmentation.
    #[error("segmentation of kind {0:#x} is not known")]
    Kind(u8),
    /// The frame contradicts the header.
    #[error("the frame's own headers are not those of a {kind:?} super-packet")]
    Mismatch {
        /// The kind in the header.
        kind: SegmentKind,
    },
    /// Segments of no bytes.
    #[error("segments of zero bytes")]
    NoSegmentSize,
}

/// Decodes the header that precedes `frame`.
///
/// The sender's `hdr_len` is a hint and often wrong or zero, so the length of the
/// headers is read from the frame. A verified checksum (DATA_VALID) changes nothing for
/// a frame that is passed on, so it is not kept. A super-packet that holds no more than
/// one segment is a plain frame.
///
/// # Errors
/// If the header contradicts itself or the frame; such a frame cannot be passed on.
#[inline]
pub fn decode(header: &[u8], frame: &[u8]) -> Result<Offload, VnetError> {
    let Some(header) = header.first_chunk::<LEN>() else {
        return Err(VnetError::Short(header.len()));
    };
    // Most frames have no unfinished work: bytes 0 and 1 show it.
    if header[0] & FLAG_NEEDS_CSUM == 0 && header[1] == GSO_NONE {
        return Ok(Offload::NONE);
    }
    decode_undone(header, frame)
}

fn decode_undone(header: &[u8; LEN], frame: &[u8]) -> Result<Offload, VnetError> {
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let checksum = if header[0] & FLAG_NEEDS_CSUM != 0 {
        let (start, offset) = (field(6), field(8));
        if usize::from(start) + usize::from(offset) + 2 > frame.len() {
            let len = frame.len();
            return Err(VnetError::Checksum { start, offset, len });
        }
        Some(Checksum { start, offset })
    } else {
        None
    };
    let segments = decode_segments(header[1], field(4), frame)?;
    Ok(Offload { checksum, segments })
}

fn decode_segments(gso: u8, size: u16, frame: &[u8]) -> Result<Option<Segments>, VnetError> {
    let kind = match gso & !GSO_ECN {
        GSO_NONE => return Ok(None),
        GSO_TCP_V4 => SegmentKind::TcpV4,
        GSO_TCP_V6 => SegmentKind::TcpV6,
        GSO_UDP_L4 => SegmentKind::Udp,
        // Kernels that still use this mean one datagram fragmented by IP; none does
        // unless requested, and we do not request it.
        GSO_UDP_FRAGMENTS => return Err(VnetError::Kind(GSO_UDP_FRAGMENTS)),
        other => return Err(VnetError::Kind(other)),
    };
    if size == 0 {
        return Err(VnetError::NoSegmentSize);
    }
    let header_len = Headers::parse(frame)
        .filter(|headers| kind.matches(headers))
        .and_then(|headers| u16::try_from(headers.payload_at).ok())
        .ok_or(VnetError::Mismatch { kind })?;
    if frame.len() - usize::from(header_len) <= usize::from(size) {
        return Ok(None);
    }
    Ok(Some(Segments {
        kind,
        header_len,
        payload_len: size,
    }))
}

/// Encodes the header for the unfinished work in `frame`.
#[inline]
pub fn encode(offload: Offload, frame: &[u8]) -> [u8; LEN] {
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
            SegmentKind::TcpV4 => GSO_TCP_V4 | ecn(offload.checksum, frame),
            SegmentKind::TcpV6 => GSO_TCP_V6 | ecn(offload.checksum, frame),
            SegmentKind::Udp => GSO_UDP_L4,
        };
    }
    header[0] = flags;
    header[1] = gso;
    header
}

/// Returns the bit that makes a device set CWR on the first segment only.
fn ecn(checksum: Option<Checksum>, frame: &[u8]) -> u8 {
    let flags = checksum.and_then(|c| frame.get(usize::from(c.start) + 13));
    match flags {
        Some(flags) if flags & TCP_CWR != 0 => GSO_ECN,
        _ => 0,
    }
}
