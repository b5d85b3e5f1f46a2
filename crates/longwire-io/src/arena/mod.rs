//! The arena: a large memory range divided into segments, which are allocated and freed with the
//! backlog.
//!
//! The budget is address space. The kernel allocates pages when a segment is first used, and used
//! segments are reused first. Resident memory is therefore that of the peak backlog, and a short
//! backlog stays in a few cached segments regardless of the budget. The writer keeps free segments
//! on a stack; the reader returns them through a ring.

mod memory;

use std::fmt;
use std::io;

use longwire_engine::Bytes;

pub use memory::prefetch_to_read;
pub(crate) use memory::{Memory, fence_streamed};

use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering};

/// Segment size in bytes. A segment must hold the longest frame, a 64 KB super-packet; smaller
/// segments waste less memory per held frame.
#[cfg(not(feature = "loom"))]
pub(crate) const SEGMENT: usize = 128 << 10;

/// Small enough that two frames fill it in loom's models.
#[cfg(feature = "loom")]
pub(crate) const SEGMENT: usize = 96;

/// Failure to allocate a delay line's memory.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ArenaError {
    #[error("a memory budget of {budget} is too small; the minimum is {least}")]
    TooSmall { budget: Bytes, least: Bytes },
    #[error("a memory budget of {budget} is too large; the maximum is {most}")]
    TooLarge { budget: Bytes, most: Bytes },
    #[error("cannot reserve address space for a memory budget of {budget}: {source}; reduce it")]
    Refused { budget: Bytes, source: io::Error },
    #[error("delay line numbers exhausted after 2^28")]
    TooMany,
    #[error("cannot create an event descriptor: {0}")]
    Event(#[from] nix::Error),
}

/// Outcome of the huge-page request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Not requested.
    NotAsked,
    /// Requested; the kernel provides them as available.
    Transparent,
    /// Not available on this system.
    Unavailable {
        /// The reason, for messages.
        reason: String,
    },
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HugePages::NotAsked => f.write_str("ordinary pages"),
            HugePages::Transparent => f.write_str("transparent huge pages"),
            HugePages::Unavailable { reason } => {
                write!(f, "no huge pages, using ordinary pages ({reason})")
            }
        }
    }
}

/// Returns the number of segments in a budget.
pub(crate) fn segments_in(budget: Bytes) -> Result<u32, ArenaError> {
    // The minimum is one segment to write and one to read. The maximum is a terabyte, whose
    // resident segment tables take 32 MB.
    const LEAST: u64 = 2;
    const MOST: u64 = (1 << 40) / (128 << 10);
    let bytes = |count: u64| Bytes(count * SEGMENT as u64);
    match budget.0 / SEGMENT as u64 {
        count if count < LEAST => Err(ArenaError::TooSmall {
            budget,
            least: bytes(LEAST),
        }),
        count if count > MOST => Err(ArenaError::TooLarge {
            budget,
            most: bytes(MOST),
        }),
        count => Ok(count as u32),
    }
}

/// Ring of segments that the reader returns to the writer.
///
/// The ring has a slot per segment and holds each segment at most once, so it never overflows.
#[derive(Debug)]
pub(crate) struct ReturnRing {
    slots: Box<[AtomicU32]>,
    /// Segments returned since the start.
    returned: CachePadded<AtomicU64>,
}

impl ReturnRing {
    pub(crate) fn new(segments: u32) -> ReturnRing {
        ReturnRing {
            slots: (0..segments).map(|_| AtomicU32::new(0)).collect(),
            returned: CachePadded(AtomicU64::new(0)),
        }
    }

    /// Returns the number of segments returned since the start.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.0.load(Ordering::Relaxed)
    }
}

/// The reader's end of the return ring.
#[derive(Debug, Default)]
pub(crate) struct ReturnProducer {
    /// Segments written to the ring.
    written: u64,
    /// Segments published to the writer.
    published: u64,
    slot: usize,
}

impl ReturnProducer {
    /// Puts a segment on the ring; the writer sees it after [`Self::publish`].
    pub(crate) fn put(&mut self, ring: &ReturnRing, segment: u32) {
        // The counter's release store provides the order.
        ring.slots[self.slot].store(segment, Ordering::Relaxed);
        self.slot = next_slot(ring, self.slot);
        self.written += 1;
    }

    /// Publishes the segments put on the ring to the writer.
    #[inline]
    pub(crate) fn publish(&mut self, ring: &ReturnRing) {
        if self.published != self.written {
            self.published = self.written;
            ring.returned.0.store(self.written, Ordering::Release);
        }
    }
}

/// The writer's free segments.
#[derive(Debug)]
pub(crate) struct FreeSegments {
    /// Free segments that were used before. The most recently used one, likely still cached, is on
    /// top.
    used: Vec<u32>,
    /// The first segment that was never used.
    untouched: u32,
    count: u32,
    taken: u64,
    collected: u64,
    slot: usize,
}

impl FreeSegments {
    /// Creates a stack with all `count` segments.
    pub(crate) fn new(count: u32) -> FreeSegments {
        FreeSegments {
            used: Vec::with_capacity(count as usize),
            untouched: 0,
            count,
            taken: 0,
            collected: 0,
            slot: 0,
        }
    }

    /// Takes a free segment. The reader's accesses to it happen-before this call returns.
    pub(crate) fn take(&mut self, ring: &ReturnRing) -> Option<u32> {
        // Pairs with the release store in `ReturnProducer::publish`: the reader no longer uses the
        // segments collected below.
        let returned = ring.returned.0.load(Ordering::Acquire);
        while self.collected < returned {
            self.used
                .push(ring.slots[self.slot].load(Ordering::Relaxed));
            self.slot = next_slot(ring, self.slot);
            self.collected += 1;
        }
        let segment = match self.used.pop() {
            Some(segment) => segment,
            None if self.untouched < self.count => {
                self.untouched += 1;
                self.untouched - 1
            }
            None => return None,
        };
        self.taken += 1;
        Some(segment)
    }

    /// Returns the number of segments in use, excluding those that the reader has returned.
    pub(crate) fn in_use(&self, ring: &ReturnRing) -> u64 {
        self.taken - ring.returned()
    }

    /// Returns the total number of segments.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// Returns the slot after `slot`, with a comparison instead of a division.
fn next_slot(ring: &ReturnRing, slot: usize) -> usize {
    if slot + 1 == ring.slots.len() {
        0
    } else {
        slot + 1
    }
}
