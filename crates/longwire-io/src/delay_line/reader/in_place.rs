//! In-place decisions: a reader with a link examines frames as they arrive, and leaves them on the
//! line until their release.
//!
//! From the front on, a line then holds decided frames, frames in the link's queue, and frames not
//! yet offered to the link. For readers without a link, all frames are in the last group.

use longwire_engine::{FrameMeta, Nanos};

use super::{DelayLineReader, HeldFrame, SEGMENT};
use crate::delay_line::DelayLineWriter;
use crate::delay_line::record::{Descriptor, Head, Tail};

/// A record's place, possibly before the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPlace {
    /// Position of the record, or of the jump before it.
    at: usize,
    /// Number of earlier records since the start.
    number: u64,
}

impl DelayLineReader {
    /// Returns the first frame that is neither queued nor decided. Its `release` is the writer's
    /// value.
    #[inline]
    pub fn arrived(&mut self) -> Option<Descriptor> {
        let head = self.arrived_head()?;
        Some(head.descriptor(|| self.tail_at(self.arrived)))
    }

    /// Returns the bytes of [`Self::arrived`]'s frame; empty for a lent frame or without a frame.
    #[inline]
    pub fn arrived_bytes(&self) -> &[u8] {
        if self.arrived.number < self.read || self.arrived.number >= self.seen {
            return &[];
        }
        let (place, head) = self.head_at(self.not_passed(self.arrived));
        // SAFETY: the record is published and the reader is not past it, so its segment cannot be
        // returned while `self` is borrowed.
        unsafe {
            let at = place.at + head.bytes_at();
            self.shared.memory.slice(at, head.stored())
        }
    }

    /// Completes the arrived frame's checksum if necessary.
    #[inline]
    pub fn finish_arrived(&mut self) {
        let Some(head) = self.arrived_head() else {
            return;
        };
        if head.had_checksum() {
            // The handle does not count as held, because the record stays in place.
            self.finish_unfinished(&mut HeldFrame::new(self.arrived.at, self.shared.line));
        }
    }

    /// Queues the arrived frame behind the queued frames.
    #[inline]
    pub fn queue_arrived(&mut self) {
        if let Some(head) = self.arrived_head() {
            self.arrived = self.arrived.after(head);
        }
    }

    /// Decides that the arrived frame leaves at `release`. No frame may be queued before it.
    #[inline]
    pub fn decide_arrived(&mut self, release: Nanos) {
        if self.arrived.number < self.read || self.arrived.number >= self.seen {
            return;
        }
        let (place, head) = self.head_at(self.not_passed(self.arrived));
        // SAFETY: the record is published and not passed, so it belongs to the reader, which is
        // borrowed exclusively.
        unsafe {
            let decided = head.released_at(release);
            self.shared.memory.store(place.at, decided);
        }
        self.arrived = place.after(head);
        self.queued = self.arrived;
    }

    /// Marks the frame that `writer` has just published as decided, with the writer's release, or
    /// as queued. If an earlier frame is undecided, returns `false` and changes nothing. For a
    /// reader on the writer's thread.
    #[inline]
    pub fn follow_writer(&mut self, writer: &DelayLineWriter, decided: bool) -> bool {
        self.arrived = self.not_passed(self.arrived);
        self.queued = self.not_passed(self.queued);
        let Some((line, at, number)) = writer.end() else {
            return false;
        };
        if line != self.shared.line || number != self.arrived.number + 1 {
            return false;
        }
        // The writer has published this number of records.
        self.seen = number;
        self.arrived = RecordPlace { at, number };
        if decided {
            self.queued = self.arrived;
        }
        true
    }

    /// Discards the arrived frame.
    #[inline]
    pub fn drop_arrived(&mut self) {
        if let Some(head) = self.arrived_head() {
            self.clear(self.arrived, head);
            self.pass_arrived(head);
        }
    }

    /// Returns the arrival of [`Self::arrived`]'s frame: the writer's `release`.
    #[inline]
    pub fn arrived_at(&mut self) -> Option<Nanos> {
        self.arrived_head().map(Head::release)
    }

    /// Takes the arrived frame off the line if it arrived by `until` but keeps its bytes, and
    /// completes its checksum if necessary. Also returns its arrival and wire length.
    #[inline(always)]
    pub fn take_arrived(&mut self, until: Nanos) -> Option<(HeldFrame, FrameMeta)> {
        let head = self.arrived_head().filter(|head| head.release() <= until)?;
        let meta = FrameMeta {
            arrival: head.release(),
            len: head.wire_len(|| self.tail_at(self.arrived)),
        };
        let mut frame = if self.arrived.number == self.read {
            self.take()?
        } else {
            let frame = self.hold(self.arrived, head);
            self.pass_arrived(head);
            frame
        };
        if head.had_checksum() {
            self.finish_unfinished(&mut frame);
        }
        Some((frame, meta))
    }

    /// Decides the oldest queued frame: it leaves at `release` or is discarded. Returns its arrival
    /// and wire length; `None` if no frame is queued.
    #[inline]
    pub fn decide_queued(&mut self, release: Option<Nanos>) -> Option<FrameMeta> {
        let head = self.queued_head()?;
        let meta = FrameMeta {
            arrival: head.release(),
            len: head.wire_len(|| self.tail_at(self.queued)),
        };
        match release {
            // SAFETY: the record is published and not passed, so it belongs to the reader, which is
            // borrowed exclusively.
            Some(release) => unsafe {
                let decided = head.released_at(release);
                self.shared.memory.store(self.queued.at, decided);
            },
            None => self.clear(self.queued, head),
        }
        self.queued = self.queued.after(head);
        // Prefetch the next record to be decided: with a long queue, it is no longer cached.
        let memory = &self.shared.memory;
        memory.prefetch_to_write(self.queued.at, self.queued.at + size_of::<Head>());
        Some(meta)
    }

    /// Takes the oldest queued frame off the line but keeps its bytes.
    pub fn take_queued(&mut self) -> Option<HeldFrame> {
        let head = self.queued_head()?;
        let frame = self.hold(self.queued, head);
        self.queued = self.queued.after(head);
        Some(frame)
    }

    /// Returns the first decided frame, which is the front for [`Self::front_bytes`] and
    /// [`Self::advance`].
    #[inline]
    pub fn decided(&mut self) -> Option<Descriptor> {
        if self.voids > 0 {
            self.pass_voids();
        }
        if self.queued.number <= self.read {
            return None;
        }
        let head = self.front_head()?;
        Some(head.descriptor(|| self.tail()))
    }

    /// Skips records without frames at the front.
    #[inline(never)]
    fn pass_voids(&mut self) {
        // Frames discarded on arrival may follow the decided frames.
        self.queued_head();
        while self.queued.number > self.read
            && let Some(head) = self.front_head()
            && head.is_void()
        {
            self.voids -= 1;
            self.pass(head);
        }
    }

    /// Returns whether decided frames are on the line.
    pub fn has_decided(&self) -> bool {
        self.queued.number > self.read
    }

    /// Returns the number of frameless records on the line.
    pub fn voids(&self) -> u64 {
        self.voids
    }

    /// Returns whether no frame is on the line.
    pub fn is_empty(&mut self) -> bool {
        self.decided().is_none() && self.front().is_none()
    }

    /// Returns the arrived frame's head, after following a jump if there is one.
    #[inline(always)]
    fn arrived_head(&mut self) -> Option<Head> {
        self.arrived = self.not_passed(self.arrived);
        self.queued = self.not_passed(self.queued);
        if self.arrived.number == self.seen {
            self.published();
            if self.arrived.number == self.seen {
                return None;
            }
        }
        let (place, head) = self.head_at(self.arrived);
        self.arrived = place;
        Some(head)
    }

    /// Returns the oldest queued frame's head. Skips frames discarded on arrival.
    #[inline(always)]
    fn queued_head(&mut self) -> Option<Head> {
        self.queued = self.not_passed(self.queued);
        while self.queued.number < self.arrived.number {
            let (place, head) = self.head_at(self.queued);
            self.queued = place;
            if !head.is_void() {
                return Some(head);
            }
            self.queued = place.after(head);
        }
        None
    }

    /// Replaces a place before the front with the front. Once the front has followed a jump, the
    /// writer may reuse the jump's segment.
    #[inline(always)]
    fn not_passed(&self, place: RecordPlace) -> RecordPlace {
        if place.number > self.read {
            return place;
        }
        RecordPlace {
            at: self.at,
            number: self.read,
        }
    }

    /// Returns the head of a published record at or beyond the front, and its place after any jump.
    /// Only the front returns a jump's segment to the writer.
    #[inline(always)]
    fn head_at(&self, place: RecordPlace) -> (RecordPlace, Head) {
        // SAFETY: `place` is at a published record or at the jump before it.
        let head: Head = unsafe { self.shared.memory.load(place.at) };
        match head.jump_target() {
            None => (place, head),
            Some(segment) => {
                let at = segment as usize * SEGMENT;
                // SAFETY: see `follow`: a published record follows the jump.
                let head = unsafe { self.shared.memory.load(at) };
                (RecordPlace { at, ..place }, head)
            }
        }
    }

    /// Returns the tail of a record that has one.
    #[inline(always)]
    fn tail_at(&self, place: RecordPlace) -> Tail {
        // SAFETY: called only for published records whose head says that a tail follows.
        unsafe { self.shared.memory.load(place.at + size_of::<Head>()) }
    }

    /// Marks a record as frameless.
    #[inline]
    fn clear(&mut self, place: RecordPlace, head: Head) {
        self.voids += 1;
        // SAFETY: the record is published and not passed, so it belongs to the reader, which is
        // borrowed exclusively.
        unsafe { self.shared.memory.store(place.at, head.void()) };
    }

    /// Advances past the arrived frame, whose record is now frameless.
    fn pass_arrived(&mut self, head: Head) {
        let next = self.arrived.after(head);
        if self.queued.number == self.arrived.number {
            self.queued = next;
        }
        self.arrived = next;
    }

    /// Returns a handle to a frame beyond the front and marks its record as frameless.
    fn hold(&mut self, place: RecordPlace, head: Head) -> HeldFrame {
        self.clear(place, head);
        self.held[place.at / SEGMENT] += 1;
        HeldFrame::new(place.at, self.shared.line)
    }
}

impl RecordPlace {
    /// Returns the place of a segment's first record.
    pub(super) fn first(segment: u32) -> RecordPlace {
        RecordPlace {
            at: segment as usize * SEGMENT,
            number: 0,
        }
    }

    /// Returns the place after a record with this head.
    #[inline(always)]
    fn after(self, head: Head) -> RecordPlace {
        RecordPlace {
            at: self.at + head.record_size(),
            number: self.number + 1,
        }
    }
}
