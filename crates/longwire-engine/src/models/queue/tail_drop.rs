//! Tail drop, computed only from departures.

use alloc::collections::VecDeque;
use core::mem;

use super::QueueLimit;
use crate::models::prelude::*;

/// A tail-drop queue, computed only from departures, like TLEM's: a frame occupies the queue until
/// it departs, so an arrival finds all frames with later departures queued.
///
/// Memory is allocated in blocks; it grows and shrinks with the number of queued frames, not with
/// the limit. A `VecDeque` would copy all frames when it grows, stalling for milliseconds at a
/// million frames.
#[derive(Clone, Debug)]
pub struct TailDrop {
    packets_limit: u64,
    bytes_limit: u64,
    /// The frame with the last departure. If the queue is empty, a departed one.
    last_frame: PendingFrame,
    /// Block with the next departures, before that of `last_frame`.
    first: Vec<PendingFrame>,
    /// Number of frames in `first` that have departed.
    gone: usize,
    /// Full blocks between the first and the last.
    middle: VecDeque<Vec<PendingFrame>>,
    /// Block to which frames are appended.
    last: Vec<PendingFrame>,
    /// An empty block, so that a queue of constant length never allocates.
    spare: Vec<PendingFrame>,
    /// Departure of the first frame in the blocks; [`Nanos::MAX`] if there is none.
    next_departure: Nanos,
    packets: u64,
    bytes_left: u64,
    /// Peaks as of the last processed departure: between departures, the queue only grows.
    packets_max: u64,
    bytes_max: u64,
}

/// A frame whose departure has not been processed.
#[derive(Clone, Copy, Debug)]
struct PendingFrame {
    departure: Nanos,
    /// Total bytes entered up to and including this frame, so that several departures are accounted
    /// together.
    bytes_entered: u64,
}

/// Frames per block: 2 KiB.
const BLOCK: usize = 128;

/// Capacity to which the block list shrinks once it has fewer blocks and more than twice this
/// capacity.
const MIDDLE_KEPT: usize = 32;

impl TailDrop {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit) -> TailDrop {
        TailDrop {
            packets_limit: limit.packets.map_or(u64::MAX, |limit| limit.0),
            bytes_limit: limit.bytes.map_or(u64::MAX, |limit| limit.0),
            last_frame: PendingFrame {
                departure: Nanos::ZERO,
                bytes_entered: 0,
            },
            first: Vec::new(),
            gone: 0,
            middle: VecDeque::new(),
            last: Vec::new(),
            spare: Vec::new(),
            next_departure: Nanos::MAX,
            packets: 0,
            bytes_left: 0,
            packets_max: 0,
            bytes_max: 0,
        }
    }

    /// Removes frames that departed by `now`, and returns whether a frame of `len` bytes fits.
    #[inline(always)]
    pub fn admits(&mut self, now: Nanos, len: u32) -> bool {
        let len = u64::from(len);
        if self.last_frame.departure <= now {
            self.clear();
            return self.packets_limit > 0 && len <= self.bytes_limit;
        }
        if self.next_departure <= now {
            self.release_departed(now);
        }
        self.packets < self.packets_limit && self.bytes() + len <= self.bytes_limit
    }

    /// Adds a frame that departs at `departure`; departures must not decrease.
    #[inline(always)]
    pub fn hold(&mut self, departure: Nanos, len: u32) {
        let bytes_entered = self.last_frame.bytes_entered + u64::from(len);
        if self.packets > 0 {
            self.push_last();
        }
        self.last_frame = PendingFrame {
            departure,
            bytes_entered,
        };
        self.packets += 1;
    }

    /// Moves the last frame to the blocks.
    #[inline]
    fn push_last(&mut self) {
        if self.packets == 1 {
            self.next_departure = self.last_frame.departure;
        }
        if self.last.len() == self.last.capacity() {
            self.new_block();
        }
        self.last.push(self.last_frame);
    }

    /// Returns the limit.
    pub fn limit(&self) -> QueueLimit {
        let limited = |limit: u64| (limit < u64::MAX).then_some(limit);
        QueueLimit {
            packets: limited(self.packets_limit).map(Packets),
            bytes: limited(self.bytes_limit).map(Bytes),
        }
    }

    /// Returns the frames and bytes queued as of the last arrival.
    pub fn occupancy(&self) -> (Packets, Bytes) {
        (Packets(self.packets), Bytes(self.bytes()))
    }

    /// Returns the peak occupancy in frames and bytes.
    pub fn occupancy_max(&self) -> (Packets, Bytes) {
        let packets = self.packets_max.max(self.packets);
        (Packets(packets), Bytes(self.bytes_max.max(self.bytes())))
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.last_frame.bytes_entered - self.bytes_left
    }

    /// Updates the peaks before a departure. Branches, because peaks rarely rise.
    #[inline]
    fn note_peaks(&mut self) {
        if self.packets > self.packets_max {
            self.packets_max = self.packets;
        }
        let bytes = self.bytes();
        if bytes > self.bytes_max {
            self.bytes_max = bytes;
        }
    }

    /// Removes all frames.
    #[inline]
    fn clear(&mut self) {
        self.note_peaks();
        if self.packets > 1 {
            self.clear_blocks();
        }
        self.packets = 0;
        self.bytes_left = self.last_frame.bytes_entered;
    }

    #[inline(never)]
    fn clear_blocks(&mut self) {
        self.next_departure = Nanos::MAX;
        self.gone = 0;
        self.first.clear();
        self.last.clear();
        if !self.middle.is_empty() {
            self.middle = VecDeque::new();
        }
    }

    /// Removes the frames in the blocks that departed by `now`.
    #[inline]
    fn release_departed(&mut self, now: Nanos) {
        self.note_peaks();
        self.next_departure = Nanos::MAX;
        while self.packets > 1 {
            if self.gone == self.first.len() {
                self.next_block();
            }
            for held in &self.first[self.gone..] {
                if held.departure > now {
                    self.next_departure = held.departure;
                    return;
                }
                self.bytes_left = held.bytes_entered;
                self.gone += 1;
                self.packets -= 1;
            }
        }
    }

    /// Makes the next block the first. A queue shorter than a block swaps its two blocks.
    fn next_block(&mut self) {
        self.gone = 0;
        self.first.clear();
        match self.middle.pop_front() {
            Some(next) => self.spare = mem::replace(&mut self.first, next),
            None => mem::swap(&mut self.first, &mut self.last),
        }
        if self.middle.len() < MIDDLE_KEPT && self.middle.capacity() > 2 * MIDDLE_KEPT {
            self.middle.shrink_to(MIDDLE_KEPT);
        }
    }

    #[cold]
    fn new_block(&mut self) {
        let mut block = mem::take(&mut self.spare);
        block.reserve_exact(BLOCK);
        let full = mem::replace(&mut self.last, block);
        if !full.is_empty() {
            self.middle.push_back(full);
        }
    }

    /// Returns the allocated capacity in frames.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let middle: usize = self.middle.iter().map(Vec::capacity).sum();
        self.first.capacity() + middle + self.last.capacity() + self.spare.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_backlog() {
        let mut queue = TailDrop::new(QueueLimit::UNLIMITED);
        for departure in 1..=1_000_000 {
            queue.hold(Nanos::from_nanos(departure), 64);
        }
        assert!(queue.admits(Nanos::from_nanos(999_900), 64));
        assert_eq!(queue.occupancy(), (Packets(100), Bytes(6_400)));
        assert_eq!(
            queue.occupancy_max(),
            (Packets(1_000_000), Bytes(64_000_000))
        );
        assert!(queue.capacity() <= 4 * BLOCK, "{}", queue.capacity());
        assert!(queue.middle.capacity() <= 2 * MIDDLE_KEPT);
    }

    #[test]
    fn a_short_line_stays_in_two_blocks() {
        let mut queue = TailDrop::new(QueueLimit::UNLIMITED);
        for now in 0..10_000 {
            assert!(queue.admits(Nanos::from_nanos(now), 64));
            queue.hold(Nanos::from_nanos(now + 50), 64);
        }
        assert_eq!(queue.occupancy().0, Packets(50));
        assert!(queue.capacity() <= 3 * BLOCK, "{}", queue.capacity());
    }
}
