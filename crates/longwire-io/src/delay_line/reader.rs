//! The reader's side.

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

/// Prefetch distance in bytes (decision 0010). With it, reading an uncached backlog is limited by
/// memory bandwidth, not latency.
const PREFETCH_AHEAD: usize = 4096;

/// Minimum number of published records for prefetching. With fewer, a prefetch could take cache
/// lines from the writer. Assumes the shortest record, 32 bytes.
const PREFETCH_MIN: u64 = (PREFETCH_AHEAD / 32) as u64;

/// Bytes to prefetch of a held frame's record: the head and a short frame.
const PREFETCH_HELD: usize = 80;

/// A frame taken off the line while its bytes stay in place. Return it with
/// [`DelayLineReader::free`]; dropping it leaks its segment for the life of the line.
#[derive(Debug)]
#[must_use = "its memory comes back only through `DelayLineReader::free`"]
pub struct HeldFrame {
    /// Record position in units of [`ALIGN`] bytes, with the line's number in the high bits. Two
    /// words instead of one, to need an alignment of only four bytes.
    words: [u32; 2],
}

/// Bits of a position. Suffices for a terabyte in units of [`ALIGN`] bytes.
const POSITION_BITS: u32 = 36;

/// Bits of a line number.
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

    /// Returns the position of the frame's record.
    #[inline(always)]
    fn at(&self) -> usize {
        (self.word() & ((1 << POSITION_BITS) - 1)) as usize * ALIGN
    }

    #[inline(always)]
    fn line(&self) -> u64 {
        self.word() >> POSITION_BITS
    }
}

/// The reader's side of a delay line.
///
/// # Invariant
/// The `seen - read` records from `at` on are published: the writer has written them and does not
/// touch them until their segments are returned. A segment is returned once the reader is past it
/// and it has no [`HeldFrame`] left.
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
    /// The first record not decided in place. In this field and the next, any place before the
    /// front is equivalent to the front.
    queued: RecordPlace,
    /// The first record neither decided in place nor queued.
    arrived: RecordPlace,
    /// Records without a frame beyond the front.
    voids: u64,
    /// Number of held frames per segment, combined with [`PASSED`].
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

    /// Returns the oldest published frame. Reads the writer's counter only once all known records
    /// are consumed.
    #[inline]
    pub fn front(&mut self) -> Option<Descriptor> {
        let head = self.front_head()?;
        Some(head.descriptor(|| self.tail()))
    }

    /// Returns the bytes of [`Self::front`]'s frame; empty for a lent frame or without a frame.
    #[inline]
    pub fn front_bytes(&self) -> &[u8] {
        if self.read == self.seen {
            return &[];
        }
        // SAFETY: the record at `at` is published.
        let head: Head = unsafe { self.shared.memory.load(self.at) };
        let at = self.at + head.bytes_at();
        // SAFETY: the record is published, and its segment cannot be returned while `self` is
        // borrowed.
        unsafe { self.shared.memory.slice(at, head.stored()) }
    }

    /// Consumes the front frame and frees its bytes.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(head) = self.front_head() {
            self.pass(head);
        }
    }

    /// Passes at most `max` [plain](Descriptor::is_plain) frames from the front on to `take`, in order,
    /// and consumes those for which it returns `true`. Ends at the first other frame, at a release
    /// after `due_by`, and at the end of a segment. Returns the number of frames consumed.
    #[inline(always)]
    pub fn take_plain(
        &mut self,
        due_by: Nanos,
        max: usize,
        mut take: impl FnMut(Nanos, &[u8]) -> bool,
    ) -> u64 {
        let memory = &self.shared.memory;
        let (mut at, mut taken) = (self.at, 0);
        let mut known = self.seen - self.read;
        while taken < max as u64 {
            if taken == known {
                self.seen = self.shared.published.0.load(Ordering::Acquire);
                known = self.seen - self.read;
                if taken == known {
                    break;
                }
            }
            // SAFETY: records before `seen` are published, and `at` is at one of them or at the
            // jump before it. Their segment cannot be returned while `self` is borrowed.
            let (head, bytes) = unsafe {
                let head: Head = memory.load(at);
                if !head.is_plain() || head.release() > due_by {
                    break;
                }
                (head, memory.slice(at + size_of::<Head>(), head.stored()))
            };
            if !take(head.release(), bytes) {
                break;
            }
            let size = head.record_size();
            if known - taken > PREFETCH_MIN {
                memory.prefetch_to_read(at + PREFETCH_AHEAD, size);
            }
            at += size;
            taken += 1;
        }
        self.at = at;
        self.read += taken;
        taken
    }

    /// Consumes the front frame but keeps its bytes.
    #[inline(always)]
    pub fn take(&mut self) -> Option<HeldFrame> {
        let head = self.front_head()?;
        let frame = HeldFrame::new(self.at, self.shared.line);
        self.held[self.at / SEGMENT] += 1;
        self.pass(head);
        Some(frame)
    }

    /// Returns a held frame's descriptor as written, except after in-place decisions and edits, and
    /// its bytes; empty for a lent frame.
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline(always)]
    pub fn record(&self, frame: &HeldFrame) -> (Descriptor, &[u8]) {
        let (at, head) = self.record_of(frame);
        let memory = &self.shared.memory;
        // SAFETY: see `record_of`; the head says that a tail follows. The frame is not freed while
        // `self` is borrowed.
        unsafe {
            let descriptor = head.descriptor(|| memory.load(at + size_of::<Head>()));
            (
                descriptor,
                memory.slice(at + head.bytes_at(), head.stored()),
            )
        }
    }

    /// Returns the descriptor of [`Self::record`].
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn descriptor(&self, frame: &HeldFrame) -> Descriptor {
        self.record(frame).0
    }

    /// Returns the bytes of [`Self::record`].
    ///
    /// # Panics
    /// If the frame belongs to another delay line.
    #[inline]
    pub fn bytes(&self, frame: &HeldFrame) -> &[u8] {
        self.record(frame).1
    }

    /// Prefetches a held frame's record.
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
        // SAFETY: the record was published when the frame was taken, and its segment is not
        // returned while the frame is held.
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
        // SAFETY: see `record_of`; in addition, `frame` is the record's only handle and is
        // borrowed exclusively.
        unsafe {
            if head.is_part() {
                let tail_at = at + size_of::<Head>();
                let tail: Tail = memory.load(tail_at);
                memory.store(tail_at, tail.without_part());
            }
            memory.slice_mut(at + head.bytes_at(), head.stored())
        }
    }

    /// Completes a held frame's checksum if necessary. The frame stays part of its train.
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
        let Some(checksum) = self.descriptor(frame).offload().checksum else {
            return;
        };
        let (at, head) = self.record_of(frame);
        let memory = &self.shared.memory;
        // SAFETY: see `bytes_mut`: either `frame` is the record's only handle and is borrowed
        // exclusively, or the record is on the line of `self`, which is borrowed exclusively. The
        // head says that a tail follows.
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
    #[inline(always)]
    pub fn free(&mut self, frame: HeldFrame) {
        let segment = self.position_of(&frame) / SEGMENT;
        self.held[segment] -= 1;
        if self.held[segment] == PASSED {
            self.held[segment] = 0;
            self.returns.put(&self.shared.returns, segment as u32);
        }
    }

    /// Publishes freed segments to the writer; until then they count as used. Call at the end of a
    /// burst and before waiting.
    #[inline]
    pub fn settle(&mut self) {
        self.returns.publish(&self.shared.returns);
    }

    /// Reads the writer's counter and returns the number of frames on the line.
    #[inline]
    pub fn published(&mut self) -> u64 {
        self.seen = self.shared.published.0.load(Ordering::Acquire);
        self.seen - self.read
    }

    /// Returns the number of consumed frames, including frames beyond the front.
    pub fn consumed(&self) -> u64 {
        self.read + self.voids
    }

    /// Returns the first release after `time` among the next `look` published frames. The line must
    /// be in order of release.
    pub fn release_beyond(&mut self, time: Nanos, look: u64) -> Option<Nanos> {
        let mut at = self.at;
        for _ in 0..self.published().min(look) {
            // SAFETY: the loop visits only published records, and `at` is at one of them or at the
            // jump before it.
            let mut head: Head = unsafe { self.shared.memory.load(at) };
            if let Some(segment) = head.jump_target() {
                at = segment as usize * SEGMENT;
                // SAFETY: see `follow`: a published record follows the jump.
                head = unsafe { self.shared.memory.load(at) };
            }
            if head.release() > time {
                return Some(head.release());
            }
            at += head.record_size();
        }
        None
    }

    /// Returns the front record's head, after following a jump if there is one.
    #[inline(always)]
    fn front_head(&mut self) -> Option<Head> {
        if self.read == self.seen && self.published() == 0 {
            return None;
        }
        // SAFETY: a record beyond `read` is published, and `at` is at that record or at the jump
        // before it.
        let head: Head = unsafe { self.shared.memory.load(self.at) };
        match head.jump_target() {
            None => Some(head),
            Some(segment) => Some(self.follow(segment)),
        }
    }

    /// Advances past the front record and prefetches a later one.
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

    /// Continues in segment `next` and returns the head of its first record. Returns the passed
    /// segment to the writer unless frames in it are held.
    #[cold]
    fn follow(&mut self, next: u32) -> Head {
        let passed = self.at / SEGMENT;
        if self.held[passed] == 0 {
            self.returns.put(&self.shared.returns, passed as u32);
        } else {
            self.held[passed] |= PASSED;
        }
        self.at = next as usize * SEGMENT;
        // SAFETY: the writer jumps only to write a record, and publishes the jump with it. A record
        // beyond `read` is published, so it is this one.
        unsafe { self.shared.memory.load(self.at) }
    }

    /// Returns the front record's tail.
    #[inline(always)]
    fn tail(&self) -> Tail {
        // SAFETY: called only for published records whose head says that a tail follows.
        unsafe { self.shared.memory.load(self.at + size_of::<Head>()) }
    }
}
