//! The release queue: frames of many links, waiting for release.

mod wheel;

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Ordering;

use longwire_units::Nanos;

use crate::link::LinkId;
use wheel::{Wheel, slot_of};

/// A priority queue of items by release time.
///
/// Items of the current slot are sorted; later items are in a timing wheel with slots of 65
/// microseconds, sorted slot by slot when reached. A push costs the same for ten items and
/// for a million; a pop costs O(log k) for k items in the slot. Idle links cost nothing.
///
/// Ties are released in the order of link numbers, and within a link in push order, so
/// several queues that share the links release in the same order as one queue with all
/// links. Memory follows the number of items, plus 0.5 MB allocated at the first push for a
/// later slot.
#[derive(Debug)]
pub struct ReleaseQueue<T> {
    /// Items of the current slot, sorted; the next one is last.
    current: Vec<WaitingItem<T>>,
    /// Items pushed for the current or an earlier slot after it began.
    late: BinaryHeap<WaitingItem<T>>,
    /// First slot still in the wheel.
    slot_next: u64,
    wheel: Wheel<T>,
    pushed: Sequence,
    len: usize,
}

/// Sort key of an item, unique in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReleaseKey {
    pub release: Nanos,
    pub link: LinkId,
    pub sequence: Sequence,
}

/// A sequence number that wraps around. It orders only items with the same link and
/// release, and fewer than 2^31 items are pushed while one of them waits. This keeps the
/// key at 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence(u32);

impl Sequence {
    /// Returns the number and increments it.
    #[inline]
    pub fn next(&mut self) -> Sequence {
        let number = *self;
        self.0 = self.0.wrapping_add(1);
        number
    }
}

impl PartialOrd for Sequence {
    #[inline]
    fn partial_cmp(&self, other: &Sequence) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sequence {
    #[inline]
    fn cmp(&self, other: &Sequence) -> Ordering {
        self.0.wrapping_sub(other.0).cast_signed().cmp(&0)
    }
}

/// An item and its key.
#[derive(Debug)]
struct WaitingItem<T> {
    place: ReleaseKey,
    item: T,
}

/// Minimum capacity kept for late items.
const LATE_KEPT: usize = 256;

impl<T> Default for ReleaseQueue<T> {
    fn default() -> ReleaseQueue<T> {
        ReleaseQueue::new()
    }
}

impl<T> ReleaseQueue<T> {
    /// Creates an empty queue.
    pub fn new() -> ReleaseQueue<T> {
        ReleaseQueue {
            current: Vec::new(),
            late: BinaryHeap::new(),
            slot_next: 0,
            wheel: Wheel::new(),
            pushed: Sequence::default(),
            len: 0,
        }
    }

    /// Adds an item of `link` with this release time.
    #[inline]
    pub fn push(&mut self, link: LinkId, release: Nanos, item: T) {
        let place = ReleaseKey {
            release,
            link,
            sequence: self.pushed.next(),
        };
        self.push_at(place, item);
    }

    /// Adds an item with a unique key.
    #[inline]
    pub(crate) fn push_at(&mut self, place: ReleaseKey, item: T) {
        let waiting = WaitingItem { place, item };
        let release = place.release;
        self.len += 1;
        if slot_of(release) >= self.slot_next {
            self.wheel.push(waiting);
        } else {
            self.late.push(waiting);
        }
    }

    /// Returns the release time of the next item.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        let current = self.current.last().map(|next| next.place.release);
        let late = self.late.peek().map(|next| next.place.release);
        match (current, late) {
            (Some(current), Some(late)) => Some(current.min(late)),
            // Items in the wheel follow all of these.
            (near, other) => near.or(other).or(self.wheel.next_at()),
        }
    }

    /// Removes the next item due by `now`; returns its link, release time and value.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, T)> {
        if self.current.is_empty() && self.late.is_empty() {
            let next = self.wheel.next_at()?;
            if next > now {
                return None;
            }
            self.begin_slot(slot_of(next));
        }
        let current = self.current.last().map(|next| next.place);
        let late = self.late.peek().map(|next| next.place);
        let of_current = match (current, late) {
            (Some(current), Some(late)) => current < late,
            (current, _) => current.is_some(),
        };
        let waiting = if of_current {
            self.current.pop_if(|next| next.place.release <= now)?
        } else {
            let next = self.late.peek_mut()?;
            if next.place.release > now {
                return None;
            }
            let waiting = PeekMut::pop(next);
            self.shrink_late();
            waiting
        };
        self.len -= 1;
        Some((waiting.place.link, waiting.place.release, waiting.item))
    }

    /// Returns the next item and its release time.
    #[inline]
    pub fn peek(&mut self) -> Option<(Nanos, &T)> {
        self.next_key()?;
        let next = match (self.current.last(), self.late.peek()) {
            // The heap's top is the next of its items.
            (Some(current), Some(late)) => current.max(late),
            (current, late) => current.or(late)?,
        };
        Some((next.place.release, &next.item))
    }

    /// Returns the release time and the link of the next item.
    #[inline]
    pub fn next_place(&mut self) -> Option<(Nanos, LinkId)> {
        let next = self.next_key()?;
        Some((next.release, next.link))
    }

    pub(crate) fn next_key(&mut self) -> Option<ReleaseKey> {
        if self.current.is_empty() && self.late.is_empty() {
            let next = self.wheel.next_at()?;
            self.begin_slot(slot_of(next));
        }
        let current = self.current.last().map(|next| next.place);
        let late = self.late.peek().map(|next| next.place);
        current.into_iter().chain(late).min()
    }

    /// Returns the links of upcoming items, as far as known without a search.
    pub fn next_links(&self) -> impl Iterator<Item = LinkId> {
        self.current.iter().rev().map(|waiting| waiting.place.link)
    }

    /// Returns the item `items` positions ahead, if known without a search.
    #[inline]
    pub fn ahead(&self, items: usize) -> Option<&T> {
        let index = self.current.len().checked_sub(items + 1)?;
        self.current.get(index).map(|waiting| &waiting.item)
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Retains the items for whose link and release time `keep` returns `true`. Visits all
    /// items.
    pub fn retain(&mut self, keep: impl Fn(LinkId, Nanos) -> bool) {
        let keep = |waiting: &WaitingItem<T>| keep(waiting.place.link, waiting.place.release);
        self.current.retain(keep);
        self.late.retain(keep);
        self.wheel.retain(keep, self.slot_next);
        self.len = self.current.len() + self.late.len() + self.wheel.len();
    }

    /// Moves the items of a slot, the earliest, out of the wheel.
    fn begin_slot(&mut self, slot: u64) {
        self.slot_next = slot + 1;
        self.wheel.take(slot, &mut self.current);
        // Most slots are nearly in reverse order already.
        self.current
            .sort_unstable_by_key(|waiting| core::cmp::Reverse(waiting.place));
    }

    fn shrink_late(&mut self) {
        // Halved at a quarter of use, so copies are amortised O(1) per item.
        let capacity = self.late.capacity();
        if capacity > LATE_KEPT && self.late.len() < capacity / 4 {
            self.late.shrink_to(capacity / 2);
        }
    }
}

impl<T> PartialEq for WaitingItem<T> {
    fn eq(&self, other: &WaitingItem<T>) -> bool {
        self.place == other.place
    }
}

impl<T> Eq for WaitingItem<T> {}

impl<T> PartialOrd for WaitingItem<T> {
    fn partial_cmp(&self, other: &WaitingItem<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for WaitingItem<T> {
    /// Reversed, because the standard heap is a max-heap.
    fn cmp(&self, other: &WaitingItem<T>) -> Ordering {
        other.place.cmp(&self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_time_keep_their_order_when_sequence_numbers_wrap_around() {
        let mut queue = ReleaseQueue::new();
        queue.pushed = Sequence(u32::MAX - 3);
        for item in 0..8 {
            queue.push(LinkId(0), Nanos::from_nanos(7), item);
        }
        let popped = core::iter::from_fn(|| queue.pop_due(Nanos::MAX));
        assert!(popped.map(|(_, _, item)| item).eq(0..8));
    }

    #[test]
    fn the_next_item_is_seen_before_it_is_taken() {
        let mut queue = ReleaseQueue::new();
        let at = Nanos::from_micros;
        assert!(queue.peek().is_none());
        for (item, release) in [300, 100, 200, 100, 90_000].into_iter().enumerate() {
            queue.push(LinkId(0), at(release), item);
            if item == 2 {
                // The slot begins: further items of it are late.
                assert_eq!(queue.peek(), Some((at(100), &1)));
            }
        }
        for expected in [(100, 1), (100, 3), (200, 2), (300, 0), (90_000, 4)] {
            assert_eq!(queue.peek(), Some((at(expected.0), &expected.1)));
            let popped = queue.pop_due(Nanos::MAX);
            assert_eq!(popped, Some((LinkId(0), at(expected.0), expected.1)));
        }
    }

    #[test]
    fn memory_follows_what_is_late() {
        let mut queue = ReleaseQueue::new();
        queue.push(LinkId(0), Nanos::from_secs(1), u64::MAX);
        assert!(queue.pop_due(Nanos::from_secs(1)).is_some());
        let at = |step: u64| Nanos::from_nanos(1_000_000 - step);
        // Each item precedes all earlier ones.
        for step in 0..500_000 {
            queue.push(LinkId(0), at(step), step);
        }
        assert_eq!(queue.late.len(), 500_000);
        for step in (100..500_000).rev() {
            assert_eq!(queue.pop_due(Nanos::MAX), Some((LinkId(0), at(step), step)));
        }
        assert_eq!(queue.len(), 100);
        let capacity = queue.late.capacity();
        assert!(capacity <= 4 * LATE_KEPT, "{capacity}");
    }
}
