//! The release queue: frames from many links, waiting for release.

mod sorted;
mod wheel;

use core::cmp::Ordering;

use longwire_units::Nanos;

use crate::fifo::Fifo;
use crate::link::LinkId;
use sorted::Sorted;

/// A priority queue of items by release time.
///
/// Items pushed in order form a FIFO, the run. Once an item is out of order, further items are
/// sorted until the sorted part is empty: items of the current slot in a heap, later ones in a
/// timing wheel with slots of 65 microseconds, each sorted when reached. A push costs the same for
/// ten items and for a million; a pop costs O(log k) for k items in the slot. Idle links cost
/// nothing.
///
/// Ties are released in the order of link numbers, and within a link in push order, so several
/// queues that share the links release in the same order as one queue with all links. Memory grows
/// and shrinks with the number of items, except for 0.5 MB allocated when the first item out of
/// order is pushed for a later slot.
#[derive(Debug)]
pub struct ReleaseQueue<T> {
    /// Items in order.
    run: Fifo<WaitingItem<T>>,
    /// Release of the run's last item.
    run_last: Nanos,
    /// Items pushed out of order, or while the sorted part was not empty.
    sorted: Sorted<T>,
    pushed: Sequence,
}

/// Sort key of an item, unique in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReleaseKey {
    pub release: Nanos,
    pub link: LinkId,
    pub sequence: Sequence,
}

/// A sequence number that wraps around, which keeps the key at 16 bytes. It only orders items with
/// the same link and release time; fewer than 2^31 items are pushed while one of them waits.
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

/// An item with its key.
#[derive(Debug)]
struct WaitingItem<T> {
    place: ReleaseKey,
    item: T,
}

impl<T> Default for ReleaseQueue<T> {
    fn default() -> ReleaseQueue<T> {
        ReleaseQueue::new()
    }
}

impl<T> ReleaseQueue<T> {
    /// Creates an empty queue.
    pub fn new() -> ReleaseQueue<T> {
        ReleaseQueue {
            run: Fifo::default(),
            run_last: Nanos::ZERO,
            sorted: Sorted::new(),
            pushed: Sequence::default(),
        }
    }

    /// Adds an item for `link` with this release time.
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
        // Only ties compare whole keys, which are farther away.
        let is_in_order =
            place.release > self.run_last || self.run.back().is_none_or(|last| last.place < place);
        if is_in_order && self.sorted.len() == 0 {
            self.run_last = place.release;
            self.run.push_back(waiting);
        } else {
            self.sorted.push(waiting);
        }
    }

    /// Returns the release time of the next item.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        let run = self.run.front().map(|next| next.place.release);
        match self.sorted.next_at() {
            None => run,
            Some(sorted) => Some(run.map_or(sorted, |run| run.min(sorted))),
        }
    }

    /// Removes the next item if due by `now` and returns its link, release time and value.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, T)> {
        if self.sorted.len() > 0 && !self.is_run_next() {
            return self.sorted.pop_due(now);
        }
        let waiting = self.run.pop_front_if(|next| next.place.release <= now)?;
        Some((waiting.place.link, waiting.place.release, waiting.item))
    }

    /// Whether the next item is in the run.
    #[inline]
    fn is_run_next(&mut self) -> bool {
        let Some(run) = self.run.front().map(|next| next.place) else {
            return false;
        };
        match self.sorted.next_at() {
            None => true,
            Some(sorted) if run.release == sorted => {
                self.sorted.peek().is_none_or(|next| run < next.place)
            }
            Some(sorted) => run.release < sorted,
        }
    }

    fn next(&mut self) -> Option<&WaitingItem<T>> {
        if self.is_run_next() {
            self.run.front()
        } else {
            self.sorted.peek()
        }
    }

    /// Returns the next item and its release time.
    #[inline]
    pub fn peek(&mut self) -> Option<(Nanos, &T)> {
        let next = self.next()?;
        Some((next.place.release, &next.item))
    }

    /// Returns the next item's release time and link.
    #[inline]
    pub fn next_place(&mut self) -> Option<(Nanos, LinkId)> {
        let next = self.next_key()?;
        Some((next.release, next.link))
    }

    pub(crate) fn next_key(&mut self) -> Option<ReleaseKey> {
        self.next().map(|next| next.place)
    }

    /// Returns the links of upcoming items, as far as known without a search.
    pub fn next_links(&self) -> impl Iterator<Item = LinkId> {
        let upcoming = self.run.iter().chain(self.sorted.upcoming());
        upcoming.map(|waiting| waiting.place.link)
    }

    /// Returns the item about `items` positions ahead, if known without a search.
    #[inline]
    pub fn ahead(&self, items: usize) -> Option<&T> {
        Some(&self.waiting_ahead(items)?.item)
    }

    /// Returns the link of the item about `items` positions ahead, if known without a search.
    #[inline]
    pub fn link_ahead(&self, items: usize) -> Option<LinkId> {
        Some(self.waiting_ahead(items)?.place.link)
    }

    #[inline]
    fn waiting_ahead(&self, items: usize) -> Option<&WaitingItem<T>> {
        let of_run = self.run.get_near(items);
        of_run.or_else(|| self.sorted.upcoming().nth(items))
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.run.len() + self.sorted.len()
    }

    /// Whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps only items for which `keep(link, release)` returns `true`. Visits all items.
    pub fn retain(&mut self, keep: impl Fn(LinkId, Nanos) -> bool) {
        let keep = |waiting: &WaitingItem<T>| keep(waiting.place.link, waiting.place.release);
        self.run.retain(keep);
        self.sorted.retain(keep);
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
                // The slot begins; further items pushed to it are late.
                assert_eq!(queue.peek(), Some((at(100), &1)));
            }
        }
        for expected in [(100, 1), (100, 3), (200, 2), (300, 0), (90_000, 4)] {
            assert_eq!(queue.peek(), Some((at(expected.0), &expected.1)));
            let popped = queue.pop_due(Nanos::MAX);
            assert_eq!(popped, Some((LinkId(0), at(expected.0), expected.1)));
        }
    }
}
