//! Free segments: the writer's stack, and the ring on which the reader returns them.

use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering};

/// Segments returned by the reader to the writer.
///
/// It has a slot per segment, and each segment is on it at most once, so it never
/// overflows.
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

/// The reader's end of the ring.
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
    /// Used segments; the most recently used is on top, as it is most likely cached.
    used: Vec<u32>,
    /// The first of the segments never used.
    untouched: u32,
    count: u32,
    taken: u64,
    collected: u64,
    slot: usize,
}

impl FreeSegments {
    /// Creates the stack of all `count` segments.
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

    /// Takes a free segment; the reader's accesses to it happened before.
    pub(crate) fn take(&mut self, ring: &ReturnRing) -> Option<u32> {
        // Pairs with the release store of `ReturnProducer::publish`: the reader is done
        // with the segments collected here.
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

    /// Returns the number of segments in use, as far as the reader has published.
    pub(crate) fn in_use(&self, ring: &ReturnRing) -> u64 {
        self.taken - ring.returned()
    }

    /// Returns the number of segments.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// Returns the slot after `slot`; a comparison avoids the division of a remainder.
fn next_slot(ring: &ReturnRing, slot: usize) -> usize {
    if slot + 1 == ring.slots.len() {
        0
    } else {
        slot + 1
    }
}
