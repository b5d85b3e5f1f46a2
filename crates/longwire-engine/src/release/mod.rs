//! The release queue: what waits for its release, of many links, by time.

mod wheel;

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Ordering;

use longwire_units::Nanos;

use crate::link::LinkId;
use wheel::{Wheel, slot_of};

/// Items waiting for their release.
///
/// What is released soon is kept in order; all else lies in the slots of a
/// wheel, each as wide as 65 microseconds, and is put in order slot by slot
/// as its time comes. So a push costs the same for ten items and for a
/// million, and a pop costs O(log k) where k items are released in the same
/// slot. An idle link costs nothing at all.
///
/// Ties are broken by the order of pushing. Memory follows what waits, but
/// for 0.5 MB which a queue takes when something is first released later than
/// in the slot of now.
#[derive(Debug)]
pub struct ReleaseQueue<T> {
    /// Of the slot whose time has come: sorted, the next one last.
    current: Vec<Waiting<T>>,
    /// What was pushed for that slot, or for one before, when it had begun.
    late: BinaryHeap<Waiting<T>>,
    /// The first slot that is still in the wheel.
    slot_next: u64,
    wheel: Wheel<T>,
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
    link: LinkId,
    item: T,
}

/// Room for so many late items is always kept.
const LATE_KEPT: usize = 256;

impl<T> Default for ReleaseQueue<T> {
    fn default() -> ReleaseQueue<T> {
        ReleaseQueue::new()
    }
}

impl<T> ReleaseQueue<T> {
    /// An empty queue.
    pub fn new() -> ReleaseQueue<T> {
        ReleaseQueue {
            current: Vec::new(),
            late: BinaryHeap::new(),
            slot_next: 0,
            wheel: Wheel::new(),
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
        let waiting = Waiting { place, link, item };
        self.pushed += 1;
        self.len += 1;
        if slot_of(release) >= self.slot_next {
            self.wheel.push(waiting);
        } else {
            self.late.push(waiting);
        }
    }

    /// When the next item is due.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        let current = self.current.last().map(|next| next.place.release);
        let late = self.late.peek().map(|next| next.place.release);
        match (current, late) {
            (Some(current), Some(late)) => Some(current.min(late)),
            // What is in the wheel comes behind all of these.
            (near, other) => near.or(other).or(self.wheel.next_at()),
        }
    }

    /// Takes the next item due at `now` or before: its link, release and
    /// itself.
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
        Some((waiting.link, waiting.place.release, waiting.item))
    }

    /// The links of the items that are released next, as far as that is
    /// known without a search.
    pub fn next_links(&self) -> impl Iterator<Item = LinkId> {
        self.current.iter().rev().map(|waiting| waiting.link)
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

    /// Forgets the items that `keep` says no to, of their link and release.
    /// Goes through all.
    pub fn retain(&mut self, keep: impl Fn(LinkId, Nanos) -> bool) {
        let keep = |waiting: &Waiting<T>| keep(waiting.link, waiting.place.release);
        self.current.retain(keep);
        self.late.retain(keep);
        self.wheel.retain(keep, self.slot_next);
        self.len = self.current.len() + self.late.len() + self.wheel.len();
    }

    /// Takes the items of a slot out of the wheel: none is before them.
    fn begin_slot(&mut self, slot: u64) {
        self.slot_next = slot + 1;
        self.wheel.take(slot, &mut self.current);
        // Most slots are nearly in the opposite order already.
        self.current
            .sort_unstable_by_key(|waiting| core::cmp::Reverse(waiting.place));
    }

    fn shrink_late(&mut self) {
        // Halved when a quarter is in use: the copies cost O(1) an item.
        let capacity = self.late.capacity();
        if capacity > LATE_KEPT && self.late.len() < capacity / 4 {
            self.late.shrink_to(capacity / 2);
        }
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.place == other.place
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    /// Reversed: the standard heap keeps the greatest on top.
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        other.place.cmp(&self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_is_late() {
        let mut queue = ReleaseQueue::new();
        queue.push(LinkId(0), Nanos::from_secs(1), u64::MAX);
        assert!(queue.pop_due(Nanos::from_secs(1)).is_some());
        let at = |step: u64| Nanos::from_nanos(1_000_000 - step);
        // Each is due before all that came before it.
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
