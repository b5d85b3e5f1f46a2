//! Work that a sender leaves to the hardware, and its execution in software.
//!
//! A sender with checksum and segmentation offloads passes a virtual device frames
//! whose checksum is unfinished, and buffers that hold many wire frames at once. The
//! link must see wire frames; the next device must see right checksums.

mod checksum;
mod headers;
mod join;
mod oversized;
mod segments;

pub use checksum::{finish_checksum, finish_if_partial};
pub use headers::{Headers, Network, Transport};
pub use join::{Joiner, TrainPart};
pub use oversized::{Oversized, strip_jumbo};
pub use segments::{WireFrames, can_cut, cut, cut_tcp, cut_unfinished};

/// The unfinished work of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum at `start + offset`, over everything from `start` on, is
    /// unfinished: it holds the folded sum of the pseudo-header only.
    pub checksum: Option<Checksum>,
    /// The buffer stands for several wire frames.
    pub segments: Option<Segments>,
}

impl Offload {
    /// None: the frame is as on the wire.
    pub const NONE: Offload = Offload {
        checksum: None,
        segments: None,
    };
}

/// An unfinished checksum, as virtio-net describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Start of the summed bytes, from the start of the frame.
    pub start: u16,
    /// Position of the checksum, from `start`.
    pub offset: u16,
}

/// The segmentation of a buffer into wire frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Kind of the packet.
    pub kind: SegmentKind,
    /// Bytes of headers, repeated in each wire frame.
    pub header_len: u16,
    /// Bytes of payload in each wire frame but the last.
    pub payload_len: u16,
}

/// The kind of a segmented packet.
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
