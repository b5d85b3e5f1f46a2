//! The reading side.

use longwire_engine::Nanos;

use super::SharedState;
use super::record::{ALIGN, Descriptor, Head, Tail};
use crate::arena::{ReturnProducer, SEGMENT};
use crate::port::offload::finish_checksum;
use crate::sync::{Arc, Ordering};

mod in_place;

use in_place::RecordPlace;

/// Flag in [`DelayLineReader::held`]: the reader is past this segment.
const PASSED: u32 = 1 << 31;

/// Prefetch distance in bytes (decision 0010). An uncached backlog is then read at memory
/// bandwidth instead of latency.
const PREFETCH_AHEAD: usize = 4096;

/// Prefetch only if more than this many records are published; otherwise the prefetch could
/// take cache lines from the writer. Assumes the shortest record, 32 bytes.
const PREFETCH_MIN: u64 = (PREFETCH_AHEAD / 32) as u64;

/// Prefetched bytes of a held frame's record: the head and a short frame.
const PREFETCH_HELD: usize = 80;

/// A frame taken from the line whose bytes are kept. Return it with
/// [`DelayLineReader::free`]; dropping it leaks its segment for the life of the line.
#[derive(Debug)]
#[must_use = "its memory comes back only through `DelayLineReader::free`"]
pub struct HeldFrame {
    /// Record position in units of [`ALIGN`] bytes; the line's number in the high bits.
    /// Two words, for an alignment of four bytes.
    words: [u32; 2],
}

/// Bits of a position: the maximum of a terabyte in units of [`ALIGN`] bytes.
const POSITION_BITS: u32 = 36;

/// Bits of a line's number.
pub(super) const LINE_BITS: u32 = 64 - POSITION_BITS;

impl HeldFrame {
    #[inline(always)]
    fn new(at: usize, line: u64) -> HeldFrame {
        let word = line << POSITION_BITS | (at / ALIGN) as u64;
        HeldFrame {
            words: [word as u32, (word >> 32) as u32],
        }
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        u64::from(self.words[0]) | u64::from(self.words[1]) << 32
    }

    /// Returns its record's position.
    #[inline(always)]
    fn at(&self) -> usize {
        (self.word() & ((1 << POSITION_BITS) - 1)) as usize * ALIGN
    }

    #[inline(always)]
    fn line(&self) -> u64 {
        self.word() >> POSITION_BITS
    }
}

/// The reading side of a delay line.
///
/// # Invariant
/// Records from `at` on, as many as `seen - read`, are published: the writer
/// has written them and will not touch them before their segments are given
/// back. A segment is given back once the reader is past it and no
/// [`HeldFrame`] of it is left.
#[derive(Debug)]
#[repr(align(128))]
pub struct DelayLineReader {
    shared: Arc<SharedState>,
    /// Position of the next record, or of the jump before it.
    at: usize,
    /// Records consumed since the start.
    read: u64,
    /// Records known to be published.
    seen: u64,
    /// The first record not decided in place. Here and below, a place before the front
    /// means the front.
    queued: RecordPlace,
    /// The first record neither decided in place nor queued.
    arrived: RecordPlace,
    /// Records beyond the front without a frame.
    voids: u64,
    /// By segment: number of held frames, and [`PASSED`].
    held: Vec<u32>,
    returns: ReturnProducer,
}

impl DelayLineReader {
    pub(super) fn new(shared: Arc<SharedState>, segments: u32, segment: u32) -> DelayLineReader {
        DelayLineReader {
            shared,
            at: segment as usize * SEGMENT,
            read: 0,
            seen: 0,
            queued: RecordPlace::first(segment),
            arrived: RecordPlace::first(segment),
            voids: 0,
            held: vec![0; segments as usize],
            returns: ReturnProducer::default(),
        }
    }

    /// Returns the oldest published frame. Reads the writer's counter only when all known
    /// records are consumed.
    #[inline]
    pub fn front(&mut self) -> Option<Descriptor> {
        let head = self.front_head()?;
        Some(head.descriptor(|| self.tail()))
    }

    /// Returns the bytes of [`Self::front`]'s frame; empty for a lent frame, or without
    /// one.
    #[inline]
    pub fn front_bytes(&self) -> &[u8] {
        if self.read == self.seen {
            return &[];
        }
        // SAFETY: the record at `at` is published.
        let head: Head = unsafe { self.shared.memory.load(self.at) };
        let at = self.at + head.bytes_at();
        // SAFETY: the record is published, and its segment cannot be given
        // back while `self` is borrowed.
        unsafe { self.shared.memory.slice(at, head.stored()) }
    }

    /// Consumes the front frame, and frees its bytes.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(head) = self.front_head() {
            self.pass(head);
        }
    }

    /// Consumes the front frame, but keeps its bytes.
    #[inline]
    pub fn take(&mut self) -> Option<HeldFrame> {
        let head = self.front_head()?;
        let frame = HeldFrame::new(self.at, self.shared.line);
        self.held[self.at / SEGMENT] += 1;
        self.pass(head);
        Some(frame)
    }

    /// Returns a held frame's descriptor as written, unless the frame was decided in
    /// place or edited.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn descriptor(&self, frame: &HeldFrame) -> Descriptor {
        let (at, head) = self.record_of(frame);
        // SAFETY: as in `record_of`; its head says that it has a tail.
        head.descriptor(|| unsafe { self.shared.memory.load(at + size_of::<Head>()) })
    }

    /// Returns the bytes of a held frame; empty for a lent one.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn bytes(&self, frame: &HeldFrame) -> &[u8] {
        let (at, head) = self.record_of(frame);
        // SAFETY: as in `record_of`; the frame is not freed while `self` is borrowed.
        unsafe {
            let memory = &self.shared.memory;
            memory.slice(at + head.bytes_at(), head.stored())
        }
    }

    /// Prefetches the record of a held frame.
    #[inline]
    pub fn prefetch(&self, frame: &HeldFrame) {
        let memory = &self.shared.memory;
        memory.prefetch_to_read(frame.at(), PREFETCH_HELD);
    }

    /// Returns the position of a held frame's record.
    #[inline(always)]
    fn position_of(&self, frame: &HeldFrame) -> usize {
        let line = self.shared.line;
        assert_eq!(frame.line(), line, "a frame of another delay line");
        frame.at()
    }

    /// Returns the position and head of a held frame's record.
    #[inline(always)]
    fn record_of(&self, frame: &HeldFrame) -> (usize, Head) {
        let at = self.position_of(frame);
        // SAFETY: the record was published when the frame was taken from this line, and
        // while the frame is held its segment is not given back.
        (at, unsafe { self.shared.memory.load(at) })
    }

    /// Returns a held frame's bytes for editing; empty for a lent frame. Removes the
    /// frame from its train.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn bytes_mut<'a>(&'a mut self, frame: &'a mut HeldFrame) -> &'a mut [u8] {
        let (at, head) = self.record_of(frame);
        let memory = &self.shared.memory;
        // SAFETY: as in `record_of`; and `frame` is the only handle of its record, borrowed
        // exclusively.
        unsafe {
            if head.is_part() {
                let tail_at = at + size_of::<Head>();
                let tail: Tail = memory.load(tail_at);
                memory.store(tail_at, tail.without_part());
            }
            memory.slice_mut(at + head.bytes_at(), head.stored())
        }
    }

    /// Finishes a held frame's checksum if necessary. The frame stays part of its train.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn finish_checksum(&mut self, frame: &mut HeldFrame) {
        let (_, head) = self.record_of(frame);
        if head.had_checksum() {
            self.finish_unfinished(frame);
        }
    }

    #[inline(never)]
    fn finish_unfinished(&mut self, frame: &mut HeldFrame) {
        let Some(checksum) = self.descriptor(frame).offload.checksum else {
            return;
        };
        let (at, head) = self.record_of(frame);
        let memory = &self.shared.memory;
        // SAFETY: as in `bytes_mut`: `frame` is the only handle of its record, borrowed
        // exclusively, or the record is on the line of `self`, which is; the head says that
        // it has a tail.
        unsafe {
            let tail_at = at + size_of::<Head>();
            let tail: Tail = memory.load(tail_at);
            memory.store(tail_at, tail.without_checksum());
            let bytes = memory.slice_mut(at + head.bytes_at(), head.stored());
            finish_checksum(bytes, checksum);
        }
    }

    /// Frees a held frame.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn free(&mut self, frame: HeldFrame) {
        let segment = self.position_of(&frame) / SEGMENT;
        self.held[segment] -= 1;
        if self.held[segment] == PASSED {
            self.held[segment] = 0;
            self.returns.put(&self.shared.returns, segment as u32);
        }
    }

    /// Publishes freed segments to the writer. Call it at the end of a burst and before
    /// waiting; until then they count as used.
    #[inline]
    pub fn settle(&mut self) {
        self.returns.publish(&self.shared.returns);
    }

    /// Returns the number of frames on the line, after reading the writer's counter.
    #[inline]
    pub fn published(&mut self) -> u64 {
        self.seen = self.shared.published.0.load(Ordering::Acquire);
        self.seen - self.read
    }

    /// Returns the number of consumed frames, including those beyond the front.
    pub fn consumed(&self) -> u64 {
        self.read + self.voids
    }

    /// Returns the first release after `time` among the next `look` published frames of a
    /// line in order of release.
    pub fn release_beyond(&mut self, time: Nanos, look: u64) -> Option<Nanos> {
        let mut at = self.at;
        for _ in 0..self.published().min(look) {
            // SAFETY: as many records as that are published from the reader's
            // place on, and `at` is one of them or the jump before it.
            let mut head: Head = unsafe { self.shared.memory.load(at) };
            if let Some(segment) = head.jump_target() {
                at = segment as usize * SEGMENT;
                // SAFETY: as in `follow`: a record is published after the jump.
                head = unsafe { self.shared.memory.load(at) };
            }
            if head.release() > time {
                return Some(head.release());
            }
            at += head.record_size();
        }
        None
    }

    /// Returns the head of the front record, after a jump if there is one.
    #[inline(always)]
    fn front_head(&mut self) -> Option<Head> {
        if self.read == self.seen && self.published() == 0 {
            return None;
        }
        // SAFETY: a record beyond `read` is published, and at `at` is either
        // it or the jump that was written before it.
        let head: Head = unsafe { self.shared.memory.load(self.at) };
        match head.jump_target() {
            None => Some(head),
            Some(segment) => Some(self.follow(segment)),
        }
    }

    /// Advances past the front record, and prefetches a later one.
    #[inline(always)]
    fn pass(&mut self, head: Head) {
        let size = head.record_size();
        if self.seen - self.read > PREFETCH_MIN {
            let memory = &self.shared.memory;
            memory.prefetch_to_read(self.at + PREFETCH_AHEAD, size);
        }
        self.at += size;
        self.read += 1;
    }

    /// Continues in the writer's next segment.
    #[cold]
    fn follow(&mut self, next: u32) -> Head {
        let passed = self.at / SEGMENT;
        if self.held[passed] == 0 {
            self.returns.put(&self.shared.returns, passed as u32);
        } else {
            self.held[passed] |= PASSED;
        }
        self.at = next as usize * SEGMENT;
        // SAFETY: the writer jumps only to write a record, and publishes it
        // after that: with one record published beyond `read`, it is this.
        unsafe { self.shared.memory.load(self.at) }
    }

    /// Returns the tail of the front record.
    #[inline(always)]
    fn tail(&self) -> Tail {
        // SAFETY: called only for a published record whose head says that it
        // has a tail.
        unsafe { self.shared.memory.load(self.at + size_of::<Head>()) }
    }
}
