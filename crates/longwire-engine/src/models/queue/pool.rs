//! Many short frame queues in shared memory.

use super::QueuedFrame;
use crate::models::prelude::*;

/// Null index of a slot.
const NONE: u32 = u32::MAX;

/// Slots per block: 10 KiB.
const BLOCK: usize = 256;

/// Memory shared by many queues, each a linked list of slots. Grows in blocks and never shrinks.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    blocks: Vec<Vec<PoolSlot>>,
    /// Head of the free list.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct PoolSlot {
    frame: QueuedFrame,
    next: u32,
}

/// A frame queue in a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLine {
    head: u32,
    tail: u32,
    len: u32,
}

impl PoolLine {
    pub const EMPTY: PoolLine = PoolLine {
        head: NONE,
        tail: NONE,
        len: 0,
    };

    /// Returns the number of frames.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }
}

impl Pool {
    pub const fn new() -> Pool {
        Pool {
            blocks: Vec::new(),
            free: NONE,
        }
    }

    /// Adds a frame at the tail.
    #[inline]
    pub fn push(&mut self, line: &mut PoolLine, frame: QueuedFrame) {
        let place = self.put(frame);
        match line.len {
            0 => line.head = place,
            _ => self.place(line.tail).next = place,
        }
        line.tail = place;
        line.len += 1;
    }

    /// Removes and returns the head.
    #[inline]
    pub fn pop(&mut self, line: &mut PoolLine) -> Option<QueuedFrame> {
        line.len = line.len.checked_sub(1)?;
        let (taken, free) = (line.head, self.free);
        let place = self.place(taken);
        let frame = place.frame;
        line.head = place.next;
        place.next = free;
        self.free = taken;
        Some(frame)
    }

    #[inline]
    fn place(&mut self, index: u32) -> &mut PoolSlot {
        let index = index as usize;
        &mut self.blocks[index / BLOCK][index % BLOCK]
    }

    #[inline]
    fn put(&mut self, frame: QueuedFrame) -> u32 {
        if self.free == NONE {
            return self.put_in_new_place(frame);
        }
        let index = self.free;
        let place = self.place(index);
        let next = place.next;
        *place = PoolSlot { frame, next: NONE };
        self.free = next;
        index
    }

    #[cold]
    fn put_in_new_place(&mut self, frame: QueuedFrame) -> u32 {
        if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let full = (self.blocks.len() - 1) * BLOCK;
        let Some(last) = self.blocks.last_mut() else {
            return NONE;
        };
        last.push(PoolSlot { frame, next: NONE });
        (full + last.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use longwire_packet::frame::FrameMeta;
    use longwire_units::Nanos;

    use super::*;

    fn frame(number: u64) -> QueuedFrame {
        let meta = FrameMeta::new(Nanos::ZERO, 64);
        QueuedFrame::new(number, meta)
    }

    /// Compares ten growing and shrinking queues with `VecDeque`.
    #[test]
    fn lines_follow_the_standard_deque() {
        let mut pool = Pool::new();
        let mut lines = [PoolLine::EMPTY; 10];
        let mut oracles: Vec<VecDeque<u64>> = (0..10).map(|_| VecDeque::new()).collect();
        let mut most = 0;
        for step in 0..20_000u64 {
            let which = (step * 7 % 10) as usize;
            if step / 1_000 % 2 == 0 || step % 3 == 0 {
                pool.push(&mut lines[which], frame(step));
                oracles[which].push_back(step);
            } else {
                let taken = pool.pop(&mut lines[which]).map(|frame| frame.number);
                assert_eq!(taken, oracles[which].pop_front());
            }
            assert_eq!(lines[which].len() as usize, oracles[which].len());
            most = most.max(oracles.iter().map(VecDeque::len).sum());
        }
        let places: usize = pool.blocks.iter().map(Vec::len).sum();
        assert_eq!(places, most, "a free slot was not reused");
        assert!(most > 2 * BLOCK, "the pool was hardly used");
    }
}
