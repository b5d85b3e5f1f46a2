//! A frame as a model sees it on its way.

use longwire_packet::frame::FrameMeta;
use longwire_units::{Bytes, Nanos, Packets};

/// What a model may know of the frame that it decides about.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// Arrival and length.
    pub frame: FrameMeta,
    /// When the frame reaches the model: its arrival before the queue, its
    /// departure on the medium, the start of its service at the rate.
    pub at: Nanos,
    /// The frame's bytes, as far as the caller has them: from none to all.
    pub bytes: &'a [u8],
    /// Frames and bytes in the queue at that moment.
    pub waiting: (Packets, Bytes),
}

/// Where a managed link finds the bytes of frames that it said were queued.
pub trait FrameBytes {
    /// The bytes of the frame with this number, or none if they are not known.
    fn bytes(&self, number: u64) -> &[u8];
}

/// No bytes are known: enough for a link whose models look at none.
impl FrameBytes for () {
    fn bytes(&self, _number: u64) -> &[u8] {
        &[]
    }
}
