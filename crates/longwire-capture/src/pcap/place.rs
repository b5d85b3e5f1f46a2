//! Where a frame lies in the reader's buffer, and what is known of it.

use super::link_type::Framing;

/// Where a frame lies in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) stamp: u64,
    pub(super) at: usize,
    pub(super) len: u32,
    pub(super) wire_len: u32,
    pub(super) framing: Framing,
    pub(super) interface: u32,
}

impl Place {
    /// A frame of `captured` bytes at `at`, `original` on the wire, both with
    /// `fcs_len` bytes of check sequence at the original's end. Some tools
    /// write an original length of zero: then it is the captured one.
    #[inline]
    pub(super) fn new(stamp: u64, at: usize, captured: u32, original: u32, fcs_len: u32) -> Place {
        let wire_len = original.max(captured).saturating_sub(fcs_len);
        Place {
            stamp,
            at,
            len: captured.min(wire_len),
            wire_len,
            framing: Framing::Ethernet,
            interface: 0,
        }
    }

    /// The same, captured on this interface.
    #[inline]
    pub(super) fn on(self, interface: u32) -> Place {
        Place { interface, ..self }
    }

    /// The same, of frames that begin with something else than Ethernet's
    /// header.
    #[inline]
    pub(super) fn framed(self, framing: Framing) -> Place {
        Place { framing, ..self }
    }
}
