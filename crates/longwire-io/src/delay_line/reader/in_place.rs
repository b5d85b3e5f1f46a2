//! Frames that are decided where they lie: a reader that has a link looks at them
//! as they arrive, and leaves them on the line until their release.
//!
//! From the front on, a line then holds decided frames, frames in the link's queue, and
//! frames that have arrived and were not offered yet. The first and the last part are
//! all that other readers see: nothing is decided, and the front has just arrived.

use longwire_engine::{FrameMeta, Nanos};

use super::{DelayLineReader, HeldFrame, SEGMENT};
use crate::delay_line::DelayLineWriter;
use crate::delay_line::record::{Descriptor, Head, Tail};

/// A record at or beyond the front, or one that the front has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPlace {
    /// Position of the record, or of the jump to it.
    at: usize,
    /// Number of records before it since the start.
    number: u64,
}

impl DelayLineReader {
    /// Returns the first frame that has arrived and is neither queued nor decided. Its
    /// `release` is what the writer gave.
    #[inline]
    pub fn arrived(&mut self) -> Option<Descriptor> {
        let head = self.arrived_head()?;
        Some(head.descriptor(|| self.tail_at(self.arrived)))
    }

    /// Returns the bytes of the frame that [`Self::arrived`] returned; empty for a lent
    /// one, and if there was none.
    #[inline]
    pub fn arrived_bytes(&self) -> &[u8] {
        let place = self.arrived;
        if place.number < self.read || place.number >= self.seen {
            return &[];
        }
        // SAFETY: the record is published, and the reader is not past it.
        let head: Head = unsafe { self.shared.memory.load(place.at) };
        // SAFETY: as above; its segment cannot be given back while `self` is borrowed.
        unsafe {
            let at = place.at + head.bytes_at();
            self.shared.memory.slice(at, head.stored())
        }
    }

    /// Finishes the checksum of the arrived frame, if it is unfinished.
    #[inline]
    pub fn finish_arrived(&mut self) {
        let Some(head) = self.arrived_head() else {
            return;
        };
        if head.had_checksum() {
            // Not counted as held: the record stays where it is.
            self.finish_unfinished(&mut HeldFrame::new(self.arrived.at, self.shared.line));
        }
    }

    /// Leaves the arrived frame on the line as the last of the queued ones.
    #[inline]
    pub fn queue_arrived(&mut self) {
        if let Some(head) = self.arrived_head() {
            self.arrived = self.arrived.after(head);
        }
    }

    /// Decides the arrived frame, where none is queued before it: it is released at
    /// `release`.
    #[inline]
    pub fn decide_arrived(&mut self, release: Nanos) {
        let place = self.arrived;
        if place.number < self.read || place.number >= self.seen {
            return;
        }
        let (place, head) = self.head_at(place);
        // SAFETY: the record is published and not passed: it is the reader's, who is
        // borrowed exclusively.
        unsafe {
            let decided = head.released_at(release);
            self.shared.memory.store(place.at, decided);
        }
        self.arrived = place.after(head);
        self.queued = self.arrived;
    }

    /// Passes over the frame that `writer` has just published, where no other has
    /// arrived: it is decided already, with the release that the writer gave, or queued.
    /// Returns `false`, and does nothing, where that is not so. For a reader on the
    /// writer's thread.
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
        // The writer has published as many, and is not ahead of itself.
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

    /// Takes the arrived frame off the line and keeps its bytes.
    #[inline]
    pub fn take_arrived(&mut self) -> Option<HeldFrame> {
        let head = self.arrived_head()?;
        if self.arrived.number == self.read {
            return self.take();
        }
        let frame = self.hold(self.arrived, head);
        self.pass_arrived(head);
        Some(frame)
    }

    /// Decides the frame that has been queued longest: it is released at `release`, or
    /// discarded. Returns its arrival and its length on the wire; `None` if no frame is
    /// queued.
    #[inline]
    pub fn decide_queued(&mut self, release: Option<Nanos>) -> Option<FrameMeta> {
        let head = self.queued_head()?;
        let descriptor = head.descriptor(|| self.tail_at(self.queued));
        match release {
            // SAFETY: the record is published and not passed: it is the reader's, who
            // is borrowed exclusively.
            Some(release) => unsafe {
                let decided = head.released_at(release);
                self.shared.memory.store(self.queued.at, decided);
            },
            None => self.clear(self.queued, head),
        }
        self.queued = self.queued.after(head);
        // It will be decided next, and a long queue has left the cache.
        let memory = &self.shared.memory;
        memory.prefetch_to_write(self.queued.at, size_of::<Head>());
        Some(FrameMeta {
            arrival: descriptor.release,
            len: descriptor.wire_len,
        })
    }

    /// Takes the frame that has been queued longest off the line and keeps its bytes.
    pub fn take_queued(&mut self) -> Option<HeldFrame> {
        let head = self.queued_head()?;
        let frame = self.hold(self.queued, head);
        self.queued = self.queued.after(head);
        Some(frame)
    }

    /// Returns the first decided frame. It is the front: [`Self::front_bytes`] and
    /// [`Self::advance`] concern it.
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

    /// Passes over records at the front that hold no frame any more.
    #[inline(never)]
    fn pass_voids(&mut self) {
        // Frames that were discarded on arrival may follow the decided ones.
        self.queued_head();
        while self.queued.number > self.read
            && let Some(head) = self.front_head()
            && head.is_void()
        {
            self.voids -= 1;
            self.pass(head);
        }
    }

    /// Whether frames were decided, and their records are still on the line.
    pub fn has_decided(&self) -> bool {
        self.queued.number > self.read
    }

    /// Returns the number of records on the line that hold no frame any more.
    pub fn voids(&self) -> u64 {
        self.voids
    }

    /// Whether the line holds no frame.
    pub fn is_empty(&mut self) -> bool {
        self.decided().is_none() && self.front().is_none()
    }

    /// Returns the head of the arrived frame, after the jump if there is one.
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

    /// Returns the head of the frame that has been queued longest, after those that
    /// were discarded on arrival.
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

    /// Returns the front for a place that the front has passed.
    #[inline(always)]
    fn not_passed(&self, place: RecordPlace) -> RecordPlace {
        if place.number >= self.read {
            return place;
        }
        RecordPlace {
            at: self.at,
            number: self.read,
        }
    }

    /// Returns the head of a record that is published and not passed, and its place
    /// after the jump if there is one. Does not give back the segment that the jump
    /// leaves: the front does that.
    #[inline(always)]
    fn head_at(&self, place: RecordPlace) -> (RecordPlace, Head) {
        // SAFETY: at `place` is a published record, or the jump that was written before
        // it.
        let head: Head = unsafe { self.shared.memory.load(place.at) };
        match head.jump_target() {
            None => (place, head),
            Some(segment) => {
                let at = segment as usize * SEGMENT;
                // SAFETY: as in `follow`: the record is published after the jump.
                let head = unsafe { self.shared.memory.load(at) };
                (RecordPlace { at, ..place }, head)
            }
        }
    }

    /// Returns the rest of the descriptor of a record that has one.
    #[inline(always)]
    fn tail_at(&self, place: RecordPlace) -> Tail {
        // SAFETY: called only for a published record whose head says that it has a tail.
        unsafe { self.shared.memory.load(place.at + size_of::<Head>()) }
    }

    /// Marks a record as one without a frame.
    #[inline]
    fn clear(&mut self, place: RecordPlace, head: Head) {
        self.voids += 1;
        // SAFETY: the record is published and not passed: it is the reader's, who is
        // borrowed exclusively.
        unsafe { self.shared.memory.store(place.at, head.void()) };
    }

    /// Moves past the arrived frame, whose record holds no frame any more.
    fn pass_arrived(&mut self, head: Head) {
        let next = self.arrived.after(head);
        if self.queued.number == self.arrived.number {
            self.queued = next;
        }
        self.arrived = next;
    }

    /// Returns a handle of a frame beyond the front, whose record holds none then.
    fn hold(&mut self, place: RecordPlace, head: Head) -> HeldFrame {
        self.clear(place, head);
        self.held[place.at / SEGMENT] += 1;
        HeldFrame::new(place.at, self.shared.line)
    }
}

impl RecordPlace {
    /// Returns the place of the first record, in this segment.
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
