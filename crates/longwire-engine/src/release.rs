//! The release queue: what waits for its release, of many links, by time.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::fifo::Fifo;
use crate::link::LinkId;
use crate::units::Nanos;

/// Items waiting for their release.
///
/// Each link's items wait in a line of their own, and a heap holds one small
/// entry for each line that is not empty: an idle link costs nothing, and
/// with `n` active links a push or a pop costs O(log n). An item that would
/// overtake its own link's line (order policy `reorder`) waits in a heap of
/// its own kind, where a push or a pop costs O(log n) of such items.
///
/// Ties are broken by the order of pushing. Memory follows what waits, but
/// for a small block a link; links are numbered densely from 0.
#[derive(Debug)]
pub struct ReleaseQueue<T> {
    lines: Vec<Fifo<Waiting<T>>>,
    heads: BinaryHeap<Head>,
    overtakers: BinaryHeap<Overtaker<T>>,
    pushed: u64,
    len: usize,
}

/// An item's place in time. Sequence numbers never repeat, so no two are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    release: Nanos,
    sequence: u64,
}

/// An item and its place.
#[derive(Debug)]
struct Waiting<T> {
    place: Place,
    item: T,
}

/// The first item of one link's line, which stays in the line.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    place: Place,
    link: LinkId,
}

/// An item that overtook its link's line.
#[derive(Debug)]
struct Overtaker<T> {
    link: LinkId,
    waiting: Waiting<T>,
}

/// Room for so many overtakers is always kept.
const OVERTAKERS_KEPT: usize = 256;

impl<T> Default for ReleaseQueue<T> {
    fn default() -> ReleaseQueue<T> {
        ReleaseQueue::new()
    }
}

impl<T> ReleaseQueue<T> {
    /// An empty queue.
    pub fn new() -> ReleaseQueue<T> {
        ReleaseQueue {
            lines: Vec::new(),
            heads: BinaryHeap::new(),
            overtakers: BinaryHeap::new(),
            pushed: 0,
            len: 0,
        }
    }

    /// Adds an item of `link`, to be released at `release`.
    #[inline]
    pub fn push(&mut self, link: LinkId, release: Nanos, item: T) {
        let place = Place {
            release,
            sequence: self.pushed,
        };
        let waiting = Waiting { place, item };
        self.pushed += 1;
        self.len += 1;
        let index = link.0 as usize;
        if index >= self.lines.len() {
            self.lines.resize_with(index + 1, Fifo::new);
        }
        let line = &mut self.lines[index];
        match line.back().map(|last| last.place.release) {
            Some(last) if last > release => self.overtakers.push(Overtaker { link, waiting }),
            Some(_) => line.push_back(waiting),
            None => {
                line.push_back(waiting);
                self.heads.push(Head { place, link });
            }
        }
    }

    /// When the next item is due.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        let head = self.heads.peek().map(|head| head.place.release);
        let overtaker = self
            .overtakers
            .peek()
            .map(|item| item.waiting.place.release);
        match (head, overtaker) {
            (Some(head), Some(overtaker)) => Some(head.min(overtaker)),
            (head, overtaker) => head.or(overtaker),
        }
    }

    /// Takes the next item due at `now` or before: its link, release and
    /// itself.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, T)> {
        if !self.overtakers.is_empty() && self.overtaker_is_next() {
            return self.pop_overtaker(now);
        }
        let mut head = self.heads.peek_mut()?;
        if head.place.release > now {
            return None;
        }
        let link = head.link;
        let line = &mut self.lines[link.0 as usize];
        let waiting = line.pop_front()?;
        self.len -= 1;
        match line.front() {
            // The heap sets itself right when the guard is dropped.
            Some(next) => head.place = next.place,
            None => {
                PeekMut::pop(head);
            }
        }
        Some((link, waiting.place.release, waiting.item))
    }

    /// How many items wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn overtaker_is_next(&self) -> bool {
        match (self.heads.peek(), self.overtakers.peek()) {
            (Some(head), Some(overtaker)) => overtaker.waiting.place < head.place,
            (None, overtaker) => overtaker.is_some(),
            (Some(_), None) => false,
        }
    }

    fn pop_overtaker(&mut self, now: Nanos) -> Option<(LinkId, Nanos, T)> {
        if self.overtakers.peek()?.waiting.place.release > now {
            return None;
        }
        let Overtaker { link, waiting } = self.overtakers.pop()?;
        self.len -= 1;
        // Halved when a quarter is in use: the copies cost O(1) an item.
        let capacity = self.overtakers.capacity();
        if capacity > OVERTAKERS_KEPT && self.overtakers.len() < capacity / 4 {
            self.overtakers.shrink_to(capacity / 2);
        }
        Some((link, waiting.place.release, waiting.item))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    /// Reversed: the standard heap keeps the greatest on top.
    fn cmp(&self, other: &Head) -> Ordering {
        other.place.cmp(&self.place)
    }
}

impl<T> PartialEq for Overtaker<T> {
    fn eq(&self, other: &Overtaker<T>) -> bool {
        self.waiting.place == other.waiting.place
    }
}

impl<T> Eq for Overtaker<T> {}

impl<T> PartialOrd for Overtaker<T> {
    fn partial_cmp(&self, other: &Overtaker<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Overtaker<T> {
    /// Reversed, as for [`Head`].
    fn cmp(&self, other: &Overtaker<T>) -> Ordering {
        other.waiting.place.cmp(&self.waiting.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_overtakes() {
        let mut queue = ReleaseQueue::new();
        let at = |step: u64| Nanos::from_nanos(1_000_000 - step);
        // Each is due before all that came before it.
        for step in 0..500_000 {
            queue.push(LinkId(0), at(step), step);
        }
        assert_eq!(queue.overtakers.len(), 499_999);
        for step in (100..500_000).rev() {
            assert_eq!(queue.pop_due(Nanos::MAX), Some((LinkId(0), at(step), step)));
        }
        assert_eq!(queue.len(), 100);
        let capacity = queue.overtakers.capacity();
        assert!(capacity <= 4 * OVERTAKERS_KEPT, "{capacity}");
    }
}
