//! Offloads and their execution in software.
//!
//! With checksum and segmentation offloads, a sender passes frames with partial checksums and
//! buffers of several wire frames to virtual devices. The link must process wire frames, and the
//! next device needs valid checksums.

mod checksum;
mod headers;
mod join;
mod segments;
mod splitter;
mod tunnel;

pub use checksum::{finish_checksum, finish_if_partial};
pub use headers::{Headers, IpHeader, Transport};
pub use join::{Joiner, TrainPart};
use longwire_packet::header::IpVersion;
pub use segments::{SuperPacket, WireFrames, cut, cut_tcp, strip_jumbo};
pub use splitter::Splitter;
pub(super) use tunnel::find_inner;

/// Work left unfinished on a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum at `start + offset` over all bytes from `start` on is partial: it holds only
    /// the folded pseudo-header sum.
    pub checksum: Option<Checksum>,
    /// The buffer holds several wire frames.
    pub segments: Option<Segments>,
}

impl Offload {
    /// No offloads: the frame is as on the wire.
    pub const NONE: Offload = Offload {
        checksum: None,
        segments: None,
    };
}

/// A partial checksum, as virtio-net describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Offset of the first summed byte in the frame.
    pub start: u16,
    /// Offset of the checksum from `start`.
    pub offset: u16,
}

/// The segmentation of a buffer into wire frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Packet kind.
    pub kind: SegmentKind,
    /// Header bytes, which every wire frame repeats.
    pub header_len: u16,
    /// Payload bytes per wire frame, except the last.
    pub payload_len: u16,
    /// Whether only the first wire frame has CWR, as the response to one mark (RFC 3168 §6.1.2).
    /// Otherwise CWR is part of a counter and equal in all frames (RFC 9768 §3.2).
    pub cwr_once: bool,
}

/// Kind of a segmented packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over IPv4 or IPv6: each segment becomes a datagram.
    Udp,
}

impl Segments {
    /// Returns whether a packet with these headers can be segmented this way.
    fn fit(&self, headers: &Headers) -> bool {
        self.kind.matches(headers) && headers.payload_at == usize::from(self.header_len)
    }

    /// Returns a nonzero code of at most 3 bits for the kind and CWR.
    pub(crate) fn code(self) -> u32 {
        match (self.kind, self.cwr_once) {
            (SegmentKind::TcpV4, false) => 1,
            (SegmentKind::TcpV6, false) => 2,
            (SegmentKind::Udp, _) => 3,
            (SegmentKind::TcpV4, true) => 4,
            (SegmentKind::TcpV6, true) => 5,
        }
    }

    /// Returns the segmentation for a code; `None` if invalid.
    pub(crate) fn of_code(code: u32, (header_len, payload_len): (u16, u16)) -> Option<Segments> {
        let kind = match code {
            1 | 4 => SegmentKind::TcpV4,
            2 | 5 => SegmentKind::TcpV6,
            3 => SegmentKind::Udp,
            _ => return None,
        };
        Some(Segments {
            kind,
            header_len,
            payload_len,
            cwr_once: code > 3,
        })
    }
}

impl SegmentKind {
    /// Returns whether a frame with these headers can be a super-packet of this kind.
    pub fn matches(self, headers: &Headers) -> bool {
        let (network, transport) = (headers.ip.network, headers.transport);
        match self {
            SegmentKind::TcpV4 => network == IpVersion::V4 && transport == Transport::Tcp,
            SegmentKind::TcpV6 => network == IpVersion::V6 && transport == Transport::Tcp,
            SegmentKind::Udp => transport == Transport::Udp,
        }
    }
}
