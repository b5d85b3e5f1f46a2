//! Fragmentation before a link: the frames that a link is offered in place of one that
//! is longer than its MTU. Every caller of links asks here.

use alloc::vec::Vec;

use crate::models::mtu::Mtu;

/// The fragments of one frame. The memory is reused from frame to frame.
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
    /// Cuts a frame if a link of this MTU fragments it. Returns `false` if the link is
    /// offered the frame as it is.
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

    /// Returns the fragments of the frame that was cut last, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| &self.bytes[start..*end])
    }
}
