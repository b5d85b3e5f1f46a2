//! Work that a sender leaves to the hardware, and doing it in software.
//!
//! A sender with checksum and segmentation offloads hands a virtual device
//! frames whose checksum is unfinished, and buffers that hold many wire
//! frames at once. The link must see wire frames; the next device must see
//! right checksums.

mod checksum;
mod headers;
mod segments;

pub use checksum::{finish_checksum, finish_if_partial};
pub use headers::{Headers, Network, Transport};
pub use segments::{WireFrames, cut};

/// What the sender left undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum at `start + offset`, over everything from `start` on, is
    /// unfinished: it holds the folded sum of the pseudo-header only.
    pub checksum: Option<Checksum>,
    /// The buffer stands for several wire frames.
    pub segments: Option<Segments>,
}

impl Offload {
    /// Nothing: the frame is as it is on the wire.
    pub const NONE: Offload = Offload {
        checksum: None,
        segments: None,
    };
}

/// An unfinished checksum, as virtio-net describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Where the summed bytes begin, from the start of the frame.
    pub start: u16,
    /// Where the checksum lies, from `start`.
    pub offset: u16,
}

/// How a buffer is cut into wire frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// What is cut.
    pub kind: SegmentKind,
    /// Bytes of headers, repeated in each wire frame.
    pub header_len: u16,
    /// Bytes of payload in each wire frame but the last.
    pub payload_len: u16,
}

/// What kind of packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP over either: each segment becomes a datagram.
    Udp,
}

impl SegmentKind {
    /// Whether a frame with these headers can be a super-packet of this kind.
    pub fn matches(self, headers: &Headers) -> bool {
        let (network, transport) = (headers.network, headers.transport);
        match self {
            SegmentKind::TcpV4 => network == Network::V4 && transport == Transport::Tcp,
            SegmentKind::TcpV6 => network == Network::V6 && transport == Transport::Tcp,
            SegmentKind::Udp => transport == Transport::Udp,
        }
    }
}
