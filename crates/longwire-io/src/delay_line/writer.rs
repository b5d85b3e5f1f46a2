//! The writer's side.

use super::record::{ALIGN, Head, LEN_MAX, Tail, layout};
use super::{Note, PushError, SharedState};
use crate::arena::{FreeSegments, HugePages, SEGMENT, fence_streamed};
use crate::sync::{Arc, Ordering};

/// Record space in a segment: all but the final jump.
const ROOM: usize = SEGMENT - size_of::<Head>();

/// Maximum frame length in bytes.
const FRAME_MAX: usize = ROOM - size_of::<Head>() - size_of::<Tail>();

/// Memory in use, in bytes, above which a new segment is assumed uncached: half of a large L3
/// cache. Decision 0010 reports the gain of streaming.
const COLD_ABOVE: u64 = 16 << 20;

/// Minimum frame length for streaming. In shorter frames, lines shared with neighbours dominate.
const STREAM_MIN: usize = 512;

/// Prefetch distance in bytes (decision 0010). With a short backlog, the reader's cache still holds
/// the lines.
const PREFETCH_AHEAD: usize = 2048;

/// The writer's side of a delay line.
///
/// # Invariant
/// Memory from `at` to the end of its segment belongs to the writer: the reader reads only
/// published records, and returns only segments that it has left through a jump.
#[derive(Debug)]
#[repr(align(128))]
pub struct DelayLineWriter {
    shared: Arc<SharedState>,
    /// Position of the next record.
    at: usize,
    /// End of the segment's record space, where the jump follows.
    limit: usize,
    /// Records written since the start.
    pushed: u64,
    /// Records published to the reader.
    published: u64,
    free: FreeSegments,
    /// Position up to which the segment is prefetched.
    warm: usize,
    /// Minimum frame length for streaming: [`STREAM_MIN`] if the current segment is assumed
    /// uncached, else unlimited.
    stream_from: usize,
    /// Whether bytes were streamed since the last publication.
    streamed: bool,
}

impl DelayLineWriter {
    pub(super) fn new(
        shared: Arc<SharedState>,
        free: FreeSegments,
        segment: u32,
    ) -> DelayLineWriter {
        let at = segment as usize * SEGMENT;
        DelayLineWriter {
            shared,
            at,
            limit: at + ROOM,
            pushed: 0,
            published: 0,
            free,
            warm: at,
            stream_from: usize::MAX,
            streamed: false,
        }
    }

    /// Copies a frame to the line. The reader sees it after [`Self::publish`].
    ///
    /// # Errors
    /// [`PushError::BudgetExhausted`] if the budget has no room for the frame; a shorter frame may
    /// still fit. [`PushError::TooLong`] if the record exceeds a segment, which has room for any
    /// frame up to [`Self::frame_max`].
    // A call would add 10 % to a short frame.
    #[inline(always)]
    pub fn push(&mut self, frame: &[u8], note: Note) -> Result<(), PushError> {
        let (bytes_at, size) = layout(frame.len(), &note);
        let streams = frame.len() >= self.stream_from;
        let record = self.reserve(size, streams)?;
        let head = Head::new(frame.len() as u32, &note, false);
        let memory = &self.shared.memory;
        // SAFETY: `reserve` gave the record to the writer alone, with room for a tail if the frame's
        // bytes are not right after the head. `publish` fences streamed stores.
        unsafe {
            if bytes_at > size_of::<Head>() {
                memory.store(record + size_of::<Head>(), Tail::new(&note, head, 0));
            }
            if streams {
                self.streamed = true;
                memory.store(record, head);
                memory.stream_in(record + bytes_at, frame);
            } else {
                memory.store_with(record, head, bytes_at, frame);
            }
        }
        Ok(())
    }

    /// Adds a frame of `len` bytes that stays in its port's memory at `lent`.
    ///
    /// # Errors
    /// [`PushError::BudgetExhausted`] if the budget has no room for the descriptor;
    /// [`PushError::TooLong`] if `len` does not fit in 23 bits.
    #[inline]
    pub fn push_lent(&mut self, lent: u64, len: u32, note: Note) -> Result<(), PushError> {
        if len > LEN_MAX {
            return Err(PushError::TooLong);
        }
        let head = Head::new(len, &note, true);
        let record = self.reserve(head.record_size(), false)?;
        // SAFETY: `reserve` gave the record to the writer alone, with room for a tail.
        unsafe {
            let memory = &self.shared.memory;
            memory.store(record, head);
            memory.store(record + size_of::<Head>(), Tail::new(&note, head, lent));
        }
        Ok(())
    }

    /// Publishes all pushed frames. Call once per burst: each call with new frames costs the reader
    /// a cache miss.
    #[inline]
    pub fn publish(&mut self) {
        if self.published != self.pushed {
            self.published = self.pushed;
            if self.streamed {
                self.streamed = false;
                fence_streamed();
            }
            let published = &self.shared.published.0;
            published.store(self.pushed, Ordering::Release);
        }
    }

    /// Ensures that the next frame, of `len` bytes, fits.
    ///
    /// # Errors
    /// As for [`Self::push`].
    #[inline]
    pub fn make_room(&mut self, len: usize) -> Result<(), PushError> {
        if len > FRAME_MAX {
            return Err(PushError::TooLong);
        }
        // Upper bound: a descriptor of either size precedes the bytes.
        let size = size_of::<Head>() + size_of::<Tail>() + len.next_multiple_of(ALIGN);
        if self.at + size > self.limit {
            self.next_segment(size)?;
        }
        Ok(())
    }

    /// Returns the line, the position of the next record and the number of published records;
    /// `None` while records are unpublished.
    #[inline]
    pub(super) fn end(&self) -> Option<(u64, usize, u64)> {
        let all_published = self.published == self.pushed;
        all_published.then_some((self.shared.line, self.at, self.published))
    }

    /// Reserves `size` bytes for a record, in the next segment if necessary. `streams` means that its
    /// frame will be streamed.
    #[inline(always)]
    fn reserve(&mut self, size: usize, streams: bool) -> Result<usize, PushError> {
        if self.at + size > self.limit {
            self.next_segment(size)?;
        }
        let record = self.at;
        self.at += size;
        self.pushed += 1;
        let memory = &self.shared.memory;
        if self.stream_from == usize::MAX {
            self.warm = memory.prefetch_to_write(self.warm, self.at + PREFETCH_AHEAD);
        } else if !streams {
            // The lines between may be those of streamed frames.
            memory.prefetch_to_write(record + PREFETCH_AHEAD, self.at + PREFETCH_AHEAD);
        }
        Ok(record)
    }

    /// Continues in a free segment, for a record of `size` bytes.
    #[cold]
    fn next_segment(&mut self, size: usize) -> Result<(), PushError> {
        if size > ROOM {
            return Err(PushError::TooLong);
        }
        let next = self
            .free
            .take(&self.shared.returns)
            .ok_or(PushError::BudgetExhausted)?;
        // SAFETY: `limit` leaves room for a head in the segment, and memory from `at` on belongs to
        // the writer.
        unsafe { self.shared.memory.store(self.at, Head::jump(next)) };
        self.at = next as usize * SEGMENT;
        self.limit = self.at + ROOM;
        self.warm = self.at;
        let is_cold = self.memory_in_use() > COLD_ABOVE;
        self.stream_from = if is_cold { STREAM_MIN } else { usize::MAX };
        Ok(())
    }

    /// Returns the memory in bytes of segments in use or not yet reusable, including the current
    /// segment.
    pub fn memory_in_use(&self) -> u64 {
        self.free.in_use(&self.shared.returns) * SEGMENT as u64
    }

    /// Returns the budget in bytes, rounded down to whole segments.
    pub fn memory_max(&self) -> u64 {
        u64::from(self.free.count()) * SEGMENT as u64
    }

    /// Returns the maximum frame length in bytes.
    pub fn frame_max(&self) -> usize {
        FRAME_MAX
    }

    /// Returns the outcome of the huge-page request.
    pub fn huge_pages(&self) -> &HugePages {
        self.shared.memory.huge_pages()
    }
}
