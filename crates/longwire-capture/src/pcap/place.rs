//! The place of a frame in the reader's buffer, with its properties.

use super::left_out::LeftOut;
use super::link_type::Framing;

/// The content of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Frame(Place),
    LeftOut(LeftOut),
}

/// The place of a frame in the buffer, with its properties.
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
    /// Describes a frame of `captured` bytes at `at`, `original` on the wire,
    /// both with `fcs_len` bytes of check sequence at the original's end. Some
    /// tools write an original length of zero: then the captured length is used.
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

    /// Sets the interface on which the frame was captured.
    #[inline]
    pub(super) fn on(self, interface: u32) -> Place {
        Place { interface, ..self }
    }

    /// Sets the framing, for frames that do not begin with an Ethernet header.
    #[inline]
    pub(super) fn framed(self, framing: Framing) -> Place {
        Place { framing, ..self }
    }
}
