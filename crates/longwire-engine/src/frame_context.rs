//! A frame as a model sees it.

use longwire_packet::frame::FrameMeta;
use longwire_units::{Bytes, Nanos, Packets};

/// Facts about a frame that a model may use.
#[derive(Clone, Copy, Debug)]
pub struct FrameContext<'a> {
    /// Arrival and length.
    pub frame: FrameMeta,
    /// Time at which the frame reaches the model: arrival before the queue, departure on
    /// the medium, start of service at the rate.
    pub at: Nanos,
    /// The frame or a prefix of it; may be empty.
    pub bytes: &'a [u8],
    /// Frames and bytes in the queue at that time.
    pub waiting: (Packets, Bytes),
}

impl FrameContext<'_> {
    /// Returns a frame of `len` bytes that arrives at `at`, without bytes, at an empty queue.
    pub(crate) fn alone(at: Nanos, len: u32) -> FrameContext<'static> {
        FrameContext {
            frame: FrameMeta::new(at, len),
            at,
            bytes: &[],
            waiting: (Packets(0), Bytes(0)),
        }
    }
}

/// Access to the bytes of a managed link's queued frames.
pub trait FrameBytes {
    /// Returns the bytes of the frame with this number; empty if unknown.
    fn bytes(&self, number: u64) -> &[u8];
}

/// No bytes; sufficient for links whose models read none.
impl FrameBytes for () {
    fn bytes(&self, _number: u64) -> &[u8] {
        &[]
    }
}
