//! Items pushed in any order, sorted by release.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;

use longwire_units::Nanos;

use super::WaitingItem;
use super::wheel::{Wheel, slot_of};
use crate::link::LinkId;
use crate::prelude::*;

/// Items pushed in any order, sorted by release slot by slot.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    /// Items of the current slot, sorted; the next one is last.
    current: Vec<WaitingItem<T>>,
    /// Items pushed for the current or an earlier slot after it began.
    late: BinaryHeap<WaitingItem<T>>,
    /// First slot still in the wheel.
    slot_next: u64,
    wheel: Wheel<T>,
    len: usize,
}

/// Minimum capacity kept for late items.
const LATE_KEPT: usize = 256;

impl<T> Sorted<T> {
    pub fn new() -> Sorted<T> {
        Sorted {
            current: Vec::new(),
            late: BinaryHeap::new(),
            slot_next: 0,
            wheel: Wheel::new(),
            len: 0,
        }
    }

    /// Adds an item with a unique key.
    //
    // Not inlined, so that pushes to the run, the caller's fast path, need few registers.
    #[inline(never)]
    pub fn push(&mut self, waiting: WaitingItem<T>) {
        self.len += 1;
        if slot_of(waiting.place.release) >= self.slot_next {
            self.wheel.push(waiting);
        } else {
            self.late.push(waiting);
        }
    }

    /// Returns the release time of the next item.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        if self.len == 0 {
            return None;
        }
        let current = self.current.last().map(|next| next.place.release);
        let late = self.late.peek().map(|next| next.place.release);
        match (current, late) {
            (Some(current), Some(late)) => Some(current.min(late)),
            // Items in the wheel are later than current and late ones.
            (near, other) => near.or(other).or(self.wheel.next_at()),
        }
    }

    /// Removes the next item if due by `now` and returns its link, release time and value.
    #[inline(never)]
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

    /// Returns the next item.
    #[inline]
    pub fn peek(&mut self) -> Option<&WaitingItem<T>> {
        self.begin_next_slot();
        match (self.current.last(), self.late.peek()) {
            // The order is reversed, so the maximum is due first.
            (Some(current), Some(late)) => Some(current.max(late)),
            (current, late) => current.or(late),
        }
    }

    /// Returns upcoming items in order, as far as known without a search.
    #[inline]
    pub fn upcoming(&self) -> impl Iterator<Item = &WaitingItem<T>> {
        self.current.iter().rev()
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Retains the items for which `keep` returns `true`. Visits all items.
    pub fn retain(&mut self, keep: impl Fn(&WaitingItem<T>) -> bool + Copy) {
        self.current.retain(keep);
        self.late.retain(keep);
        self.wheel.retain(keep, self.slot_next);
        self.len = self.current.len() + self.late.len() + self.wheel.len();
    }

    /// Ensures that the next item is in the current slot or among the late ones.
    fn begin_next_slot(&mut self) {
        if self.current.is_empty()
            && self.late.is_empty()
            && let Some(next) = self.wheel.next_at()
        {
            self.begin_slot(slot_of(next));
        }
    }

    /// Moves the items of the earliest slot out of the wheel.
    fn begin_slot(&mut self, slot: u64) {
        self.slot_next = slot + 1;
        self.wheel.take(slot, &mut self.current);
        // Most slots are nearly in reverse order already.
        self.current
            .sort_unstable_by_key(|waiting| core::cmp::Reverse(waiting.place));
    }

    fn shrink_late(&mut self) {
        // Halved when less than a quarter is in use, so copies are amortised O(1) per item.
        let capacity = self.late.capacity();
        if capacity > LATE_KEPT && self.late.len() < capacity / 4 {
            self.late.shrink_to(capacity / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReleaseKey, Sequence};
    use super::*;
    use crate::link::LinkId;

    #[test]
    fn memory_follows_what_is_late() {
        let mut queue = Sorted::new();
        let mut sequence = Sequence::default();
        let mut waiting = |release, item| WaitingItem {
            place: ReleaseKey {
                release,
                link: LinkId(0),
                sequence: sequence.next(),
            },
            item,
        };
        queue.push(waiting(Nanos::from_secs(1), u64::MAX));
        assert!(queue.pop_due(Nanos::from_secs(1)).is_some());
        let at = |step: u64| Nanos::from_nanos(1_000_000 - step);
        // Each item precedes all earlier ones.
        for step in 0..500_000 {
            queue.push(waiting(at(step), step));
        }
        assert_eq!(queue.late.len(), 500_000);
        for step in (100..500_000).rev() {
            let popped = queue.pop_due(Nanos::MAX).map(|(_, _, item)| item);
            assert_eq!(popped, Some(step));
        }
        assert_eq!(queue.len(), 100);
        let capacity = queue.late.capacity();
        assert!(capacity <= 4 * LATE_KEPT, "{capacity}");
    }
}
