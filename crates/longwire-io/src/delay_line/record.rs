//! Record encoding: a head, and a tail for frames that need one.

use longwire_engine::Nanos;

use super::Note;
use crate::port::offload::{Checksum, Offload, Segments, TrainPart};

/// Alignment of records in bytes.
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

/// The flags of records with a [`Tail`].
const WITH_TAIL: u32 = LENT | CHECKSUM | KIND | CUT | PART;

/// Replaces a train position after an edit. No train has this number.
const NO_PART: u64 = u64::MAX;

/// Replaces `Checksum::start` and `Checksum::offset` once the checksum is complete. No frame has a
/// checksum at this offset.
const NO_CHECKSUM: u32 = u32::MAX;

/// A frame's descriptor for the reader: the encoded record, decoded on access. A decoded copy would
/// be moved through memory several times per frame.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    head: Head,
    /// Valid only if the head says that a tail follows.
    tail: Tail,
}

impl Descriptor {
    /// Creates a descriptor for a frame of `len` bytes that is on no line.
    ///
    /// # Panics
    /// If `len` exceeds what a record can express, 2^23 - 1.
    #[inline]
    pub fn new(len: u32, note: &Note) -> Descriptor {
        assert!(len <= LEN_MAX, "a frame of {len} bytes");
        let head = Head::new(len, note, false);
        Descriptor {
            head,
            tail: Tail::new(note, head, 0),
        }
    }

    /// Returns the descriptor with another release.
    #[inline(always)]
    #[must_use]
    pub fn released_at(self, release: Nanos) -> Descriptor {
        Descriptor {
            head: self.head.released_at(release),
            ..self
        }
    }

    /// Returns the scheduled time of handover to the output port.
    #[inline(always)]
    pub fn release(&self) -> Nanos {
        self.head.release()
    }

    /// Returns the number given by the writer.
    #[inline(always)]
    pub fn tag(&self) -> u32 {
        self.head.tag
    }

    /// Returns the length in bytes.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "a length, not a collection")]
    pub fn len(&self) -> u32 {
        self.head.len()
    }

    /// Returns whether the frame is complete and stored on the line, has no offloads, and was not
    /// cut from a train.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        !self.head.has_tail()
    }

    /// Returns the wire length; it exceeds the length of a truncated frame.
    #[inline(always)]
    pub fn wire_len(&self) -> u32 {
        self.head.wire_len(|| self.tail)
    }

    /// Returns the frame's location in the input port's memory, if the frame stayed there.
    #[inline(always)]
    pub fn lent(&self) -> Option<u64> {
        (self.head.word & LENT != 0).then_some(self.tail.lent)
    }

    /// Returns the frame's position in the train it was cut from; `None` after an edit.
    #[inline]
    pub fn part(&self) -> Option<TrainPart> {
        if !self.head.is_part() || self.tail.lent == NO_PART {
            return None;
        }
        let segments = self.segments()?;
        Some(TrainPart::unpack(self.tail.lent, segments))
    }

    /// Returns the work that the sender left to the hardware.
    #[inline]
    pub fn offload(&self) -> Offload {
        if self.head.word & (CHECKSUM | KIND) == 0 {
            return Offload::NONE;
        }
        let unfinished = self.head.had_checksum() && self.tail.offload as u32 != NO_CHECKSUM;
        let checksum = unfinished.then(|| Checksum {
            start: self.field(0),
            offset: self.field(1),
        });
        // Only a part with several wire frames has its train's segmentation.
        let len = self.len() as usize;
        let segments = self.segments();
        let segments =
            segments.filter(|segments| !self.head.is_part() || segments.wire_frames(len).len() > 1);
        Offload { checksum, segments }
    }

    /// Returns the segmentation of the frame, or of its train.
    fn segments(&self) -> Option<Segments> {
        let code = (self.head.word & KIND) >> KIND_SHIFT;
        Segments::of_code(code, (self.field(2), self.field(3)))
    }

    /// Returns a 16-bit field of the offload.
    fn field(&self, number: u32) -> u16 {
        (self.tail.offload >> (16 * number)) as u16
    }
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

/// The optional part of a descriptor; see [`Head::has_tail`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Tail {
    /// `Checksum::start`, `Checksum::offset`, `Segments::header_len` and `Segments::payload_len`
    /// from the low bits up; with [`CUT`], the wire length.
    offload: u64,
    /// Location in the port's memory; with [`PART`], the train position.
    lent: u64,
}

/// Returns the flags of a frame of `len` bytes.
#[inline(always)]
fn flags(len: u32, note: &Note, lent: bool) -> u32 {
    let mut word = 0;
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
    word
}

/// Returns the offset of a frame's bytes in a record with these flags.
#[inline(always)]
fn bytes_at(flags: u32) -> usize {
    if flags & WITH_TAIL != 0 {
        size_of::<Head>() + size_of::<Tail>()
    } else {
        size_of::<Head>()
    }
}

/// Rounds up to a multiple of [`ALIGN`], with half the instructions of `next_multiple_of`.
#[inline(always)]
fn aligned(len: usize) -> usize {
    (len + ALIGN - 1) & !(ALIGN - 1)
}

/// A frame's place in a record: the offset of its bytes, and the record's size.
///
/// Computed from the flags instead of the [`Head`], so that for a plain frame the compiler sees constants.
#[inline(always)]
pub(super) fn layout(len: usize, note: &Note) -> (usize, usize) {
    let bytes_at = bytes_at(flags(len as u32, note, false));
    (bytes_at, bytes_at + aligned(len))
}

impl Head {
    /// Creates the head for a frame of `len` bytes, at most [`LEN_MAX`].
    #[inline(always)]
    pub(super) fn new(len: u32, note: &Note, lent: bool) -> Head {
        Head {
            release: note.release.as_nanos(),
            tag: note.tag,
            word: len | flags(len, note, lent),
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

    /// Returns the scheduled time of handover.
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
        self.word & WITH_TAIL != 0
    }

    /// Returns whether this is the record of a frame without a [`Tail`].
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.word & !LEN_MASK == 0
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
        bytes_at(self.word)
    }

    /// Returns the record's size in bytes, a multiple of [`ALIGN`].
    #[inline(always)]
    pub(super) fn record_size(self) -> usize {
        self.bytes_at() + aligned(self.stored())
    }

    #[inline(always)]
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
        Descriptor {
            head: self,
            tail: if self.has_tail() {
                tail()
            } else {
                Tail::default()
            },
        }
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
