//! A wheel of time slots: what is released later than soon, in no order
//! within a slot.

use alloc::vec::Vec;
use core::mem;

use longwire_units::Nanos;

use super::Waiting;

/// A slot is as wide as 2^16 nanoseconds.
const SLOT_BITS: u32 = 16;

/// The wheel goes round in 1.07 s. What is released later lies among what is
/// released sooner, and is passed over once a round.
const SLOTS: usize = 1 << 14;

/// A slot's memory of so many items is used again, that of more is given back.
const KEPT_ITEMS_MAX: usize = 1_024;

/// So many slots' memory is kept.
const SPARES_MAX: usize = 64;

/// The number of the slot in which a release is, of all rounds.
#[inline]
pub(super) fn slot_of(release: Nanos) -> u64 {
    release.as_nanos() >> SLOT_BITS
}

fn index_of(slot: u64) -> usize {
    slot as usize % SLOTS
}

#[derive(Debug)]
pub(super) struct Wheel<T> {
    /// None until something is pushed.
    slots: Vec<Slot<T>>,
    /// A bit a slot: whether it has items.
    occupied: Vec<u64>,
    /// The release of the next item of all; `MAX` also when there is none.
    next: Nanos,
    len: usize,
    spares: Vec<Vec<Waiting<T>>>,
}

#[derive(Debug)]
struct Slot<T> {
    items: Vec<Waiting<T>>,
    /// The release of the first of them.
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

    /// When the next item is due.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        (self.len > 0).then_some(self.next)
    }

    /// Adds an item. Its slot must not have been taken.
    #[inline]
    pub fn push(&mut self, waiting: Waiting<T>) {
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

    /// Puts the items of a slot into `out`, which is empty: that of the next
    /// item. Those of later rounds stay.
    pub fn take(&mut self, number: u64, out: &mut Vec<Waiting<T>>) {
        let index = index_of(number);
        let slot = &mut self.slots[index];
        mem::swap(&mut slot.items, out);
        if out.iter().any(|item| slot_of(item.place.release) > number) {
            let later = |item: &mut Waiting<T>| slot_of(item.place.release) > number;
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

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Forgets the items that `keep` says no to. Slot `number` is the first
    /// that has not been taken.
    pub fn retain(&mut self, keep: impl Fn(&Waiting<T>) -> bool, number: u64) {
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

    /// A slot has no items any more.
    fn empty(&mut self, index: usize) {
        self.occupied[index / 64] &= !(1 << (index % 64));
        let memory = mem::take(&mut self.slots[index].items);
        let useful = 1..=KEPT_ITEMS_MAX;
        if useful.contains(&memory.capacity()) && self.spares.len() < SPARES_MAX {
            self.spares.push(memory);
        }
    }

    /// The release of the first item, all of which are in slot `number` or
    /// later.
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
        // The last word may have been looked at twice, which does no harm.
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
