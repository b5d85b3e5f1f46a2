//! A timer wheel for later releases; slots are unordered.

use core::mem;

use longwire_units::Nanos;

use super::WaitingItem;
use crate::prelude::*;

/// Slot width: 2^16 nanoseconds.
const SLOT_BITS: u32 = 16;

/// Number of slots: one turn of the wheel takes 1.07 s. Items for later turns share the slots and
/// are skipped once per turn.
const SLOTS: usize = 1 << 14;

/// Maximum capacity, in items, of slot memory that is reused; larger allocations are freed.
const KEPT_ITEMS_MAX: usize = 1_024;

/// Maximum number of spare slots.
const SPARES_MAX: usize = 64;

/// Returns a release's slot number, counted over all turns.
#[inline]
pub(super) fn slot_of(release: Nanos) -> u64 {
    release.as_nanos() >> SLOT_BITS
}

fn index_of(slot: u64) -> usize {
    slot as usize % SLOTS
}

#[derive(Debug)]
pub(super) struct Wheel<T> {
    /// Empty until the first push.
    slots: Vec<Slot<T>>,
    /// Bitmap of occupied slots.
    occupied: Vec<u64>,
    /// Earliest release of all items; `MAX` if empty.
    next: Nanos,
    len: usize,
    spares: Vec<Vec<WaitingItem<T>>>,
}

#[derive(Debug)]
struct Slot<T> {
    items: Vec<WaitingItem<T>>,
    /// Earliest release among the slot's items.
    first: Nanos,
}

impl<T> Wheel<T> {
    pub fn new() -> Wheel<T> {
        Wheel {
            slots: Vec::new(),
            occupied: Vec::new(),
            next: Nanos::MAX,
            len: 0,
            spares: Vec::new(),
        }
    }

    /// Returns the earliest release.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        (self.len > 0).then_some(self.next)
    }

    /// Adds an item, whose slot must not have been taken.
    #[inline]
    pub fn push(&mut self, waiting: WaitingItem<T>) {
        if self.slots.is_empty() {
            self.make_slots();
        }
        let release = waiting.place.release;
        let index = index_of(slot_of(release));
        let slot = &mut self.slots[index];
        if slot.items.is_empty() {
            slot.first = release;
            if slot.items.capacity() == 0 {
                slot.items = self.spares.pop().unwrap_or_default();
            }
            self.occupied[index / 64] |= 1 << (index % 64);
        }
        slot.first = slot.first.min(release);
        slot.items.push(waiting);
        self.next = self.next.min(release);
        self.len += 1;
    }

    /// Moves the items in the next item's slot to `out`, which must be empty. Items for later turns
    /// stay.
    pub fn take(&mut self, number: u64, out: &mut Vec<WaitingItem<T>>) {
        let index = index_of(number);
        let slot = &mut self.slots[index];
        mem::swap(&mut slot.items, out);
        if out.iter().any(|item| slot_of(item.place.release) > number) {
            let later = |item: &mut WaitingItem<T>| slot_of(item.place.release) > number;
            slot.items.extend(out.extract_if(.., later));
        }
        let releases = slot.items.iter().map(|item| item.place.release);
        slot.first = releases.min().unwrap_or(Nanos::MAX);
        self.len -= out.len();
        if slot.items.is_empty() {
            self.empty(index);
        }
        self.next = self.first_from(number + 1);
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Keeps only items for which `keep` returns `true`. Slot `number` is the first that has not
    /// been taken.
    pub fn retain(&mut self, keep: impl Fn(&WaitingItem<T>) -> bool, number: u64) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.items.is_empty() {
                continue;
            }
            let before = slot.items.len();
            slot.items.retain(&keep);
            self.len -= before - slot.items.len();
            let releases = slot.items.iter().map(|item| item.place.release);
            slot.first = releases.min().unwrap_or(Nanos::MAX);
            if slot.items.is_empty() {
                self.empty(index);
            }
        }
        self.next = match self.len {
            0 => Nanos::MAX,
            _ => self.first_from(number),
        };
    }

    /// Marks a slot as empty and recycles its memory.
    fn empty(&mut self, index: usize) {
        self.occupied[index / 64] &= !(1 << (index % 64));
        let memory = mem::take(&mut self.slots[index].items);
        let useful = 1..=KEPT_ITEMS_MAX;
        if useful.contains(&memory.capacity()) && self.spares.len() < SPARES_MAX {
            self.spares.push(memory);
        }
    }

    /// Returns the earliest release, given that all items are in slot `number` or later.
    fn first_from(&self, number: u64) -> Nanos {
        let mut passed_over = Nanos::MAX;
        let mut distance = 0;
        while distance < SLOTS as u64 {
            let index = index_of(number + distance);
            let word = self.occupied[index / 64] >> (index % 64);
            if word == 0 {
                distance += 64 - index as u64 % 64;
                continue;
            }
            distance += u64::from(word.trailing_zeros());
            let first = self.slots[index_of(number + distance)].first;
            if slot_of(first) == number + distance {
                return first;
            }
            passed_over = passed_over.min(first);
            distance += 1;
        }
        // The last word may be visited twice, which is harmless.
        passed_over
    }

    #[cold]
    fn make_slots(&mut self) {
        let slot = || Slot {
            items: Vec::new(),
            first: Nanos::MAX,
        };
        self.slots.resize_with(SLOTS, slot);
        self.occupied.resize(SLOTS / 64, 0);
    }
}
