//! A frame as a model sees it.

use longwire_packet::frame::FrameMeta;
use longwire_units::{Bytes, Nanos, Packets};

/// The facts about a frame that a model may use.
#[derive(Clone, Copy, Debug)]
pub struct FrameContext<'a> {
    /// Arrival and length.
    pub frame: FrameMeta,
    /// Time at which the frame reaches the model: its arrival before the queue, its
    /// departure on the medium, the start of its service at the rate.
    pub at: Nanos,
    /// The frame's bytes, as far as the caller has them: from none to all.
    pub bytes: &'a [u8],
    /// Frames and bytes in the queue at that time.
    pub waiting: (Packets, Bytes),
}

/// Finds the bytes of a managed link's queued frames.
pub trait FrameBytes {
    /// Returns the bytes of the frame with this number; empty if they are not known.
    fn bytes(&self, number: u64) -> &[u8];
}

/// No bytes are known: sufficient for a link whose models read none.
impl FrameBytes for () {
    fn bytes(&self, _number: u64) -> &[u8] {
        &[]
    }
}
