//! Record encoding: descriptors and frame positions.

use longwire_engine::Nanos;

use super::Note;
use crate::port::offload::{Checksum, Offload, Segments, TrainPart};

/// Alignment of records.
pub(super) const ALIGN: usize = 16;

/// Maximum frame length in a descriptor.
pub(super) const LEN_MAX: u32 = LEN_MASK;

const LEN_MASK: u32 = (1 << 23) - 1;
const JUMP: u32 = 1 << 23;
const LENT: u32 = 1 << 24;
const CHECKSUM: u32 = 1 << 25;
const KIND_SHIFT: u32 = 26;
const KIND: u32 = 7 << KIND_SHIFT;
/// The frame is truncated. Never set with an offload.
const CUT: u32 = 1 << 29;
/// The frame was taken off the line or discarded.
const VOID: u32 = 1 << 30;
/// The frame was cut from a train. Never set with [`LENT`] or [`CUT`].
const PART: u32 = 1 << 31;

/// Replaces a train position after an edit. No train has this number.
const NO_PART: u64 = u64::MAX;

/// Replaces `Checksum::start` and `Checksum::offset` once the checksum is complete. No frame has a
/// checksum at this offset.
const NO_CHECKSUM: u32 = u32::MAX;

/// A frame's descriptor as the reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Time of handover to the output port.
    pub release: Nanos,
    /// Opaque tag set by the writer.
    pub tag: u32,
    /// Length in bytes.
    pub len: u32,
    /// Work that the sender left to the hardware.
    pub offload: Offload,
    /// Position in the train that the frame was cut from; `None` after an edit.
    pub part: Option<TrainPart>,
    /// Location in the input port's memory, if the frame stayed there.
    pub lent: Option<u64>,
    /// Wire length; exceeds `len` if the frame is truncated.
    pub wire_len: u32,
}

/// The part of a descriptor that every record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Head {
    release: u64,
    /// The frame's tag or, in a segment's last record, the next segment.
    tag: u32,
    /// Length, with flags in the high bits.
    word: u32,
}

/// The rest of a descriptor. Follows the head if a flag other than [`JUMP`] is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Tail {
    /// `Checksum::start`, `Checksum::offset`, `Segments::header_len` and `Segments::payload_len`
    /// from the low bits up; with [`CUT`], the wire length.
    offload: u64,
    /// Location in the port's memory; with [`PART`], the train position.
    lent: u64,
}

impl Head {
    /// Creates the head for a frame of `len` bytes, at most [`LEN_MAX`].
    #[inline(always)]
    pub(super) fn new(len: u32, note: &Note, lent: bool) -> Head {
        let mut word = len;
        if lent {
            word |= LENT;
        }
        if note.offload.checksum.is_some() {
            word |= CHECKSUM;
        }
        if note.part.is_some() {
            word |= PART;
        }
        if let Some(segments) = note.segments() {
            word |= segments.code() << KIND_SHIFT;
        }
        if note.wire_len > len && word & (CHECKSUM | KIND) == 0 {
            word |= CUT;
        }
        Head {
            release: note.release.as_nanos(),
            tag: note.tag,
            word,
        }
    }

    /// Creates a segment's last record, which names the next `segment`.
    pub(super) fn jump(segment: u32) -> Head {
        Head {
            release: 0,
            tag: segment,
            word: JUMP,
        }
    }

    /// Returns the next segment if this is a segment's last record.
    #[inline(always)]
    pub(super) fn jump_target(self) -> Option<u32> {
        (self.word & JUMP != 0).then_some(self.tag)
    }

    /// Returns the time of handover.
    #[inline(always)]
    pub(super) fn release(self) -> Nanos {
        Nanos::from_nanos(self.release)
    }

    /// Returns the head with another release.
    #[inline(always)]
    pub(super) fn released_at(self, release: Nanos) -> Head {
        Head {
            release: release.as_nanos(),
            ..self
        }
    }

    /// Returns the head marked as having no frame.
    #[inline(always)]
    pub(super) fn void(self) -> Head {
        Head {
            word: self.word | VOID,
            ..self
        }
    }

    /// Returns whether the frame was cut from a train.
    #[inline(always)]
    pub(super) fn is_part(self) -> bool {
        self.word & PART != 0
    }

    /// Returns whether the frame was written with a partial checksum.
    #[inline(always)]
    pub(super) fn had_checksum(self) -> bool {
        self.word & CHECKSUM != 0
    }

    /// Returns whether the record has no frame.
    #[inline(always)]
    pub(super) fn is_void(self) -> bool {
        self.word & VOID != 0
    }

    /// Returns whether a [`Tail`] follows.
    #[inline(always)]
    pub(super) fn has_tail(self) -> bool {
        self.word & (LENT | CHECKSUM | KIND | CUT | PART) != 0
    }

    /// Returns the number of frame bytes in the record.
    #[inline(always)]
    pub(super) fn stored(self) -> usize {
        if self.word & LENT != 0 {
            0
        } else {
            self.len() as usize
        }
    }

    /// Returns the offset of the frame's bytes in the record.
    #[inline(always)]
    pub(super) fn bytes_at(self) -> usize {
        if self.has_tail() {
            size_of::<Head>() + size_of::<Tail>()
        } else {
            size_of::<Head>()
        }
    }

    /// Returns the record's size.
    #[inline(always)]
    pub(super) fn record_size(self) -> usize {
        self.bytes_at() + self.stored().next_multiple_of(ALIGN)
    }

    fn len(self) -> u32 {
        self.word & LEN_MASK
    }

    /// Returns the frame's wire length. Calls `tail` only for a truncated frame.
    #[inline(always)]
    pub(super) fn wire_len(self, tail: impl FnOnce() -> Tail) -> u32 {
        if self.word & CUT != 0 {
            tail().offload as u32
        } else {
            self.len()
        }
    }

    /// Returns the descriptor. Calls `tail` only if a tail follows.
    #[inline(always)]
    pub(super) fn descriptor(self, tail: impl FnOnce() -> Tail) -> Descriptor {
        let mut descriptor = Descriptor {
            release: Nanos::from_nanos(self.release),
            tag: self.tag,
            len: self.len(),
            offload: Offload::NONE,
            part: None,
            lent: None,
            wire_len: self.len(),
        };
        if self.has_tail() {
            self.unpack(tail(), &mut descriptor);
        }
        descriptor
    }

    fn unpack(self, tail: Tail, descriptor: &mut Descriptor) {
        descriptor.lent = (self.word & LENT != 0).then_some(tail.lent);
        if self.word & CUT != 0 {
            descriptor.wire_len = tail.offload as u32;
            return;
        }
        let field = |number: u32| (tail.offload >> (16 * number)) as u16;
        let unfinished = self.word & CHECKSUM != 0 && tail.offload as u32 != NO_CHECKSUM;
        let checksum = unfinished.then(|| Checksum {
            start: field(0),
            offset: field(1),
        });
        let code = (self.word & KIND) >> KIND_SHIFT;
        let segments = Segments::of_code(code, (field(2), field(3)));
        if self.word & PART != 0 {
            let part = segments.filter(|_| tail.lent != NO_PART);
            descriptor.part = part.map(|segments| TrainPart::unpack(tail.lent, segments));
        }
        let several = |segments: &Segments| segments.wire_frames(self.len() as usize).len() > 1;
        descriptor.offload = Offload {
            checksum,
            segments: segments.filter(|segments| self.word & PART == 0 || several(segments)),
        };
    }
}

impl Tail {
    /// Returns the tail without its train position. The record keeps its size.
    pub(super) fn without_part(self) -> Tail {
        Tail {
            lent: NO_PART,
            ..self
        }
    }

    /// Returns the tail with the checksum marked complete. The record keeps its size.
    pub(super) fn without_checksum(self) -> Tail {
        Tail {
            offload: self.offload | u64::from(NO_CHECKSUM),
            ..self
        }
    }

    /// Creates the tail of a frame's descriptor.
    #[inline(always)]
    pub(super) fn new(note: &Note, head: Head, lent: u64) -> Tail {
        let offload = &note.offload;
        let mut packed = 0;
        if head.word & CUT != 0 {
            packed = u64::from(note.wire_len);
        }
        if let Some(checksum) = offload.checksum {
            packed |= u64::from(checksum.start) | u64::from(checksum.offset) << 16;
        }
        if let Some(segments) = note.segments() {
            packed |= u64::from(segments.header_len) << 32 | u64::from(segments.payload_len) << 48;
        }
        Tail {
            offload: packed,
            lent: note.part.map_or(lent, TrainPart::pack),
        }
    }
}
