//! A FIFO that frees memory as it shrinks.
//!
//! `VecDeque` never shrinks on its own and doubles by copying all items, which takes milliseconds
//! at a million frames. This FIFO grows and shrinks in small blocks. A short queue fits in one
//! block and stays in cache, even after it has been long.

use alloc::collections::VecDeque;
use core::mem;

use crate::prelude::*;

/// A FIFO of blocks; an empty one allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    /// Front block; grows on demand to [`Self::BLOCK`] items.
    first: VecDeque<T>,
    /// Further blocks, allocated once the first is full, to keep short queues small.
    more: Option<Box<MoreBlocks<T>>>,
    len: usize,
}

/// Blocks after the first.
#[derive(Clone, Debug)]
struct MoreBlocks<T> {
    /// All blocks except the last are full.
    rest: VecDeque<VecDeque<T>>,
    /// An empty block, so that a queue of constant length never allocates.
    spare: VecDeque<T>,
}

/// Approximate size of a block in bytes.
const BLOCK_BYTES: usize = 2048;

/// Capacity to which the block list shrinks once it has fewer blocks and more than twice this
/// capacity.
const REST_KEPT: usize = 32;

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo {
            first: VecDeque::new(),
            more: None,
            len: 0,
        }
    }
}

impl<T> Fifo<T> {
    /// Items per block.
    const BLOCK: usize = {
        let size = if size_of::<T>() == 0 {
            1
        } else {
            size_of::<T>()
        };
        if size > BLOCK_BYTES / 8 {
            8
        } else {
            BLOCK_BYTES / size
        }
    };

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the first item.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.front()
    }

    /// Returns the last item.
    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        let rest = self.more.as_ref().and_then(|more| more.rest.back());
        rest.unwrap_or(&self.first).back()
    }

    /// Returns the item at this position if it is in the first two blocks.
    #[inline]
    pub(crate) fn get_near(&self, index: usize) -> Option<&T> {
        let second = || self.more.as_ref()?.rest.front();
        let in_second = || second()?.get(index.checked_sub(self.first.len())?);
        self.first.get(index).or_else(in_second)
    }

    /// Removes the items for which `keep` returns `false`. Visits all items.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let mut kept = Fifo::default();
        while let Some(item) = self.pop_front() {
            if keep(&item) {
                kept.push_back(item);
            }
        }
        *self = kept;
    }

    /// Iterates from the front.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let rest = self.more.iter().flat_map(|more| more.rest.iter().flatten());
        self.first.iter().chain(rest)
    }

    /// Removes and returns the first item if `predicate` holds for it.
    #[inline]
    pub(crate) fn pop_front_if(&mut self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        self.first.front().filter(|first| predicate(first))?;
        self.pop_front()
    }

    /// Removes all items. Keeps the memory of one block.
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.more = None;
        self.len = 0;
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        self.len += 1;
        let rest = self.more.as_mut().and_then(|more| more.rest.back_mut());
        let last = rest.unwrap_or(&mut self.first);
        if last.len() < Self::BLOCK {
            last.push_back(item);
        } else {
            self.push_in_new_block(item);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let item = self.first.pop_front()?;
        self.len -= 1;
        if self.first.is_empty() && self.len > 0 {
            self.next_block();
        }
        Some(item)
    }

    /// Removes and returns the last item.
    pub(crate) fn pop_back(&mut self) -> Option<T> {
        let MoreBlocks { rest, spare } = match &mut self.more {
            Some(more) if !more.rest.is_empty() => &mut **more,
            _ => {
                let item = self.first.pop_back()?;
                self.len -= 1;
                return Some(item);
            }
        };
        let last = rest.back_mut()?;
        let item = last.pop_back()?;
        self.len -= 1;
        if last.is_empty() {
            *spare = rest.pop_back().unwrap_or_default();
        }
        Some(item)
    }

    #[cold]
    fn push_in_new_block(&mut self, item: T) {
        let more = self.more.get_or_insert_with(|| {
            let (rest, spare) = (VecDeque::new(), VecDeque::new());
            Box::new(MoreBlocks { rest, spare })
        });
        let mut block = mem::take(&mut more.spare);
        block.reserve_exact(Self::BLOCK);
        block.push_back(item);
        more.rest.push_back(block);
    }

    /// Makes the second block the first and keeps the drained one as the spare.
    #[cold]
    fn next_block(&mut self) {
        let Some(MoreBlocks { rest, spare }) = self.more.as_deref_mut() else {
            return;
        };
        if let Some(next) = rest.pop_front() {
            *spare = mem::replace(&mut self.first, next);
        }
        if rest.len() < REST_KEPT && rest.capacity() > 2 * REST_KEPT {
            rest.shrink_to(REST_KEPT);
        }
    }

    /// Returns the allocated capacity in items.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let more = self.more.iter();
        let more = more.map(|more| {
            let rest: usize = more.rest.iter().map(VecDeque::capacity).sum();
            rest + more.spare.capacity()
        });
        self.first.capacity() + more.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares FIFOs of up to a few blocks with `VecDeque`.
    #[test]
    fn follows_the_standard_deque() {
        let mut line = Fifo::default();
        let mut oracle = VecDeque::new();
        let mut next = 0u64;
        for round in 0..200usize {
            let (pushes, pops) = ((round * 37) % 301, (round * 53) % 307);
            for _ in 0..pushes {
                line.push_back(next);
                oracle.push_back(next);
                next += 1;
            }
            for _ in 0..pops {
                assert_eq!(line.pop_front(), oracle.pop_front());
            }
            for _ in 0..(round * 29) % 31 {
                assert_eq!(line.pop_back(), oracle.pop_back());
            }
            if round % 50 == 49 {
                line.clear();
                oracle.clear();
            }
            if round % 7 == 6 {
                line.retain(|item| item % 3 > 0);
                oracle.retain(|item| item % 3 > 0);
            }
            assert_eq!(line.len, oracle.len());
            assert!(line.iter().eq(&oracle));
            assert_eq!((line.front(), line.back()), (oracle.front(), oracle.back()));
            let near = (0..Fifo::<u64>::BLOCK).map(|index| line.get_near(index));
            assert!(near.eq((0..Fifo::<u64>::BLOCK).map(|index| oracle.get(index))));
        }
        assert!(next > 20_000, "the queue was hardly used");
    }

    #[test]
    fn memory_follows_the_backlog() {
        let mut line = Fifo::default();
        for item in 0..1_000_000u64 {
            line.push_back(item);
        }
        while line.len > 100 {
            line.pop_front();
        }
        // The first two blocks and the spare.
        assert!(
            line.capacity() <= 3 * Fifo::<u64>::BLOCK,
            "{}",
            line.capacity()
        );
        assert!(
            line.more
                .is_some_and(|more| more.rest.capacity() <= 2 * REST_KEPT),
            "the list of blocks has kept its capacity"
        );
    }
}
