//! The rings that an AF_XDP socket shares with the kernel. In each ring, one side adds entries and
//! the other removes them. This process produces into two (fill, transmit) and consumes from two
//! (receive, completion).

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mapping::Mapping;

/// The memory of one ring.
pub(super) struct XdpRing<T> {
    _mapping: Arc<Mapping>,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
}

// SAFETY: apart from the kernel, the mapping belongs to this value alone and is not tied to a
// thread; entries are plain numbers.
unsafe impl<T: Copy + Send> Send for XdpRing<T> {}

impl<T: Copy> XdpRing<T> {
    /// Maps an AF_XDP socket's ring of `size` entries (a power of two). `page` selects one of the
    /// socket's rings, and `at` holds the offsets of its parts; both are the kernel's values.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        size: u32,
        page: i64,
        at: &libc::xdp_ring_offset,
    ) -> io::Result<XdpRing<T>> {
        let mapped = at.desc as usize + size as usize * size_of::<T>();
        let mapping = Mapping::shared(socket, page, mapped, libc::MAP_POPULATE)?;
        // SAFETY: the kernel reports these offsets (XDP_MMAP_OFFSETS). The mapping extends to the
        // end of the entries, which are the last part of the ring.
        let part = |offset: u64| unsafe { mapping.start().add(offset as usize) };
        Ok(XdpRing {
            producer: part(at.producer).cast(),
            consumer: part(at.consumer).cast(),
            flags: part(at.flags).cast(),
            entries: part(at.desc).cast(),
            _mapping: Arc::new(mapping),
            size,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the index is inside the mapping and aligned, and both sides access it only
        // atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer's index.
        unsafe { self.consumer.as_ref() }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as for the producer's index.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the size is a power of two, so the masked index is below it and inside the
        // mapping.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

/// This process's end of a ring that the kernel consumes.
pub(super) struct Producer<T> {
    ring: XdpRing<T>,
    /// Index of the next entry. The kernel sees entries up to the last submit.
    next: u32,
    /// The kernel's index when it was last read.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn new(ring: XdpRing<T>) -> Producer<T> {
        Producer {
            ring,
            next: 0,
            taken: 0,
        }
    }

    /// Returns the number of free entries, as of the last read of the kernel's index.
    #[inline]
    pub(super) fn free_slots(&self) -> u32 {
        self.ring.size - self.next.wrapping_sub(self.taken)
    }

    /// Returns the number of entries that the kernel had not consumed at the last read of its
    /// index.
    #[inline]
    pub(super) fn untaken(&self) -> u32 {
        self.next.wrapping_sub(self.taken)
    }

    /// Reads the kernel's index and returns the number of entries consumed since the last read.
    pub(super) fn look(&mut self) -> u32 {
        // Acquire: the kernel's reads happened before it advanced the index.
        let taken = self.ring.consumer().load(Ordering::Acquire);
        let fresh = taken.wrapping_sub(self.taken);
        self.taken = taken;
        fresh
    }

    /// Adds an entry, and returns whether there was a free slot.
    #[inline]
    pub(super) fn put(&mut self, entry: T) -> bool {
        if self.free_slots() == 0 {
            return false;
        }
        // SAFETY: the slot belongs to this process: the kernel has consumed the previous entry, and
        // does not see the new entry before the submit.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Returns the entry that the kernel consumed last, as of the last read. Valid only right after
    /// the read, while its slot has not been reused.
    pub(super) fn last_taken(&self) -> T {
        // SAFETY: the kernel is done with the entry, and only this process writes to this ring.
        unsafe { self.ring.entry(self.taken.wrapping_sub(1)).read() }
    }

    /// Publishes all added entries to the kernel.
    #[inline]
    pub(super) fn submit(&mut self) {
        // Release: the entries are written before the index.
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Returns whether the kernel must be woken to see new entries.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// This process's end of a ring that the kernel fills.
pub(super) struct Consumer<T> {
    ring: XdpRing<T>,
    /// Index of the next entry. The kernel sees entries up to the last release as free.
    next: u32,
    /// The kernel's index when it was last read.
    filled: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn new(ring: XdpRing<T>) -> Consumer<T> {
        Consumer {
            ring,
            next: 0,
            filled: 0,
        }
    }

    /// Returns the next entry without consuming it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<T> {
        if self.next == self.filled {
            // Acquire: entries were written before the index.
            self.filled = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.filled {
                return None;
            }
        }
        // SAFETY: the kernel has written this entry, and leaves it alone until its release.
        Some(unsafe { self.ring.entry(self.next).read() })
    }

    /// Consumes the peeked entry.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Publishes consumed entries to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        // Release: entries were read before the index moves.
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use longwire_testbed::support::Draws;

    use super::*;

    /// Creates a ring over plain memory, and the kernel's side of it.
    fn ring(size: u32, start: u32) -> (XdpRing<u64>, XdpRing<u64>) {
        let mapping = Mapping::anonymous(64 + size as usize * 8, 0);
        let mapping = Arc::new(mapping.expect("memory"));
        let side = || {
            // SAFETY: all offsets are inside the mapping of 64 bytes plus the entries.
            let part = |at| unsafe { mapping.start().add(at) };
            XdpRing {
                _mapping: Arc::clone(&mapping),
                producer: part(0).cast(),
                consumer: part(16).cast(),
                flags: part(32).cast(),
                entries: part(64).cast(),
                size,
            }
        };
        let (ours, kernel) = (side(), side());
        ours.producer().store(start, Ordering::Relaxed);
        ours.consumer().store(start, Ordering::Relaxed);
        (ours, kernel)
    }

    #[test]
    fn ours_and_the_kernels_end_agree_with_a_queue() {
        // Indices wrap around during the run.
        let start = u32::MAX - 100;
        let (ours, kernel) = ring(8, start);
        let mut producer = Producer::new(ours);
        let mut consumer = Consumer::new(kernel);
        (producer.next, producer.taken) = (start, start);
        (consumer.next, consumer.filled) = (start, start);
        let mut visible = VecDeque::new();
        let mut hidden = VecDeque::new();
        // Number of entries consumed but not yet released.
        let mut held = 0;
        let mut draws = Draws(7);
        for n in 0..100_000u64 {
            match draws.below(5) {
                0 => {
                    producer.look();
                    let room = visible.len() + hidden.len() + held < 8;
                    assert_eq!(producer.put(n), room);
                    if room {
                        hidden.push_back(n);
                    }
                }
                1 => {
                    producer.submit();
                    visible.append(&mut hidden);
                }
                2 => {
                    assert_eq!(consumer.peek(), visible.front().copied());
                    if visible.pop_front().is_some() {
                        consumer.advance();
                        held += 1;
                    }
                }
                3 => {
                    consumer.release();
                    held = 0;
                }
                _ => {
                    producer.look();
                    let untaken = visible.len() + hidden.len() + held;
                    assert_eq!(producer.untaken() as usize, untaken);
                }
            }
        }
    }
}
