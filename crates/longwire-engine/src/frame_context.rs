//! Frame data for models.

use longwire_packet::frame::FrameMeta;
use longwire_units::{Bytes, Nanos, Packets};

/// Frame properties available to models.
#[derive(Clone, Copy, Debug)]
pub struct FrameContext<'a> {
    /// Arrival and length.
    pub frame: FrameMeta,
    /// Time at which the frame reaches the model: arrival (before the queue), departure (on the
    /// medium) or start of service (at the rate).
    pub at: Nanos,
    /// The frame or a prefix of it; may be empty.
    pub bytes: &'a [u8],
    /// Frames and bytes queued as of the frame's arrival or, for rate and medium models on a
    /// managed queue, after it was dequeued.
    pub waiting: (Packets, Bytes),
}

impl FrameContext<'_> {
    /// Returns the context of a frame without bytes at an empty queue.
    pub(crate) fn alone(at: Nanos, len: u32) -> FrameContext<'static> {
        FrameContext {
            frame: FrameMeta::new(at, len),
            at,
            bytes: &[],
            waiting: (Packets(0), Bytes(0)),
        }
    }
}

/// Access to the bytes of frames in a managed queue.
pub trait FrameBytes {
    /// Returns the bytes of a frame; empty if the number is unknown.
    fn bytes(&self, number: u64) -> &[u8];
}

/// Provides no bytes, for links without models that read them.
impl FrameBytes for () {
    fn bytes(&self, _number: u64) -> &[u8] {
        &[]
    }
}
