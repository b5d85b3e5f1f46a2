//! Fragmentation before a link: fragments to offer in place of a frame longer than the MTU.
//! Shared by all callers of links.

use alloc::vec::Vec;

use crate::models::mtu::Mtu;

/// The fragments of one frame; memory is reused between frames.
///
/// ```
/// use longwire_engine::{Fragments, models::mtu::Mtu};
///
/// let mut fragments = Fragments::default();
/// let frame = [0; 1_514];
/// // A link without an MTU is offered the frame as it is.
/// assert!(!fragments.cut(Mtu::None, &frame));
/// ```
#[derive(Debug, Default)]
pub struct Fragments {
    bytes: Vec<u8>,
    /// End of each fragment in `bytes`.
    ends: Vec<usize>,
    /// Scratch memory.
    piece: Vec<u8>,
}

impl Fragments {
    /// Fragments a frame that exceeds a fragmenting MTU. Returns `false` if the frame is to
    /// be offered unchanged.
    #[inline]
    pub fn cut(&mut self, mtu: Mtu, frame: &[u8]) -> bool {
        matches!(mtu, Mtu::Fragment(_)) && self.cut_long(mtu, frame)
    }

    #[cold]
    fn cut_long(&mut self, mtu: Mtu, frame: &[u8]) -> bool {
        let Fragments { bytes, ends, piece } = self;
        bytes.clear();
        ends.clear();
        mtu.fragment(frame, piece, |fragment| {
            bytes.extend_from_slice(fragment);
            ends.push(bytes.len());
        })
    }

    /// Returns the fragments of the last frame, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| &self.bytes[start..*end])
    }
}
