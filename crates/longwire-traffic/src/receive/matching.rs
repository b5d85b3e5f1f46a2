//! Finding each frame that arrives in what a trace holds.
//!
//! A window moves along the trace. Frames of the window are found by their
//! digests through two tables of chains: of those that have not come, and of
//! those that have. Nothing is allocated for a frame. Frames that are equal,
//! byte for byte, are taken in the order of the trace: which of them was lost
//! is unknown.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use super::report::TraceReport;
use super::timing::Against;

/// Frames of the trace in the window.
const WINDOW: usize = 1 << 18;

/// Of them, those after the last that came, at most.
const AHEAD: u64 = 1 << 17;

/// Frames that were not found and may be changed ones.
const UNKNOWN_MAX: usize = 1024;

/// A chain is followed so far: only many equal frames make long ones.
const STEPS_MAX: usize = 4096;

/// A frame that the trace holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub digest: u64,
    pub due: Nanos,
    pub wire_len: u32,
    /// How much later than it was due it was sent, in nanoseconds and at the
    /// most 4.29 s, where that is known.
    pub late: u32,
}

/// Counts of the frames of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Frames of the trace up to the last that came.
    pub frames: u64,
    pub matched: u64,
    pub lost: u64,
    pub duplicates: u64,
    pub reordered: u64,
    pub changed: u64,
    pub foreign: u64,
    /// Frames of the trace, as far as it was read, after the last that came.
    pub behind_last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Came,
    /// One with other bytes came in its place.
    Changed,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    expected: Expected,
    state: State,
    /// Neighbours in the chain.
    prev: u32,
    next: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The ends of a chain, in the order of the trace.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: u32,
    tail: u32,
}

const EMPTY: Chain = Chain {
    head: NONE,
    tail: NONE,
};

/// A window over a trace.
pub(super) struct Matching {
    slots: Vec<Slot>,
    /// Frames of the window that wait, by digest.
    waiting: Vec<Chain>,
    /// Those that came; the last to come is the tail.
    came: Vec<Chain>,
    /// The window, in frames of the trace.
    begin: u64,
    end: u64,
    /// The place after the last frame of the trace that came.
    frontier: u64,
    /// The frames before it were given up: no gap is to be judged across them.
    gave_up: bool,
    counts: Counts,
    /// Lengths of frames that were not found since the last one in order.
    unknown: VecDeque<u32>,
    against: Against,
}

/// The place of a frame of the trace in the window.
fn slot_of(position: u64) -> usize {
    position as usize % WINDOW
}

fn bucket_of(digest: u64) -> usize {
    digest as usize % WINDOW
}

impl Matching {
    pub(super) fn new() -> Matching {
        Matching {
            slots: Vec::with_capacity(WINDOW),
            waiting: vec![EMPTY; WINDOW],
            came: vec![EMPTY; WINDOW],
            begin: 0,
            end: 0,
            frontier: 0,
            gave_up: false,
            counts: Counts::default(),
            unknown: VecDeque::with_capacity(UNKNOWN_MAX),
            against: Against::new(),
        }
    }

    /// How many frames of the trace there is room for.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        AHEAD.saturating_sub(self.end - self.frontier)
    }

    /// The next frame of the trace; only while there is room.
    pub(super) fn expect(&mut self, expected: Expected) {
        if self.end - self.begin == WINDOW as u64 {
            self.forget();
        }
        let index = slot_of(self.end);
        let slot = Slot {
            expected,
            state: State::Waiting,
            prev: NONE,
            next: NONE,
        };
        match self.slots.get_mut(index) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
        append(&mut self.slots, &mut self.waiting, index);
        self.end += 1;
    }

    /// The next frame of a trace that does not wait for what arrives, such as
    /// one that is being sent: the oldest frames make room and are lost.
    pub(super) fn expect_at_once(&mut self, expected: Expected) {
        self.expect(expected);
        if self.begin > self.frontier {
            self.frontier = self.begin;
            self.gave_up = true;
        }
    }

    /// The oldest frame leaves the window.
    fn forget(&mut self) {
        let index = slot_of(self.begin);
        match self.slots[index].state {
            State::Waiting => {
                unlink(&mut self.slots, &mut self.waiting, index);
                self.counts.lost += 1;
            }
            State::Came => unlink(&mut self.slots, &mut self.came, index),
            State::Changed => {}
        }
        self.begin += 1;
    }

    /// A frame came. Returns the one of the trace that it is, unless that had
    /// come before or there is none.
    #[inline]
    pub(super) fn came(&mut self, digest: u64, wire_len: u32, arrival: Nanos) -> Option<Expected> {
        let next = self.slots.get(slot_of(self.frontier));
        let is_next = |slot: &Slot| slot.expected.digest == digest;
        if self.frontier < self.end && next.is_some_and(is_next) {
            Some(self.came_in_order(self.frontier, arrival))
        } else {
            self.came_elsewhere(digest, wire_len, arrival)
        }
    }

    #[cold]
    fn came_elsewhere(&mut self, digest: u64, wire_len: u32, arrival: Nanos) -> Option<Expected> {
        let waiting = self.nearest_waiting(digest);
        let before = self.last_came(digest);
        let far = |position: u64| position.abs_diff(self.frontier);
        match (waiting, before) {
            // A copy of what just came is likelier than a leap to an equal
            // frame far ahead.
            (Some(position), Some(copy)) if far(copy) <= far(position) => {
                self.counts.duplicates += 1;
            }
            (Some(position), _) if position >= self.frontier => {
                return Some(self.came_in_order(position, arrival));
            }
            (Some(position), _) => {
                self.counts.reordered += 1;
                self.mark_came(position);
                return Some(self.slots[slot_of(position)].expected);
            }
            (None, Some(_)) => self.counts.duplicates += 1,
            (None, None) => {
                self.counts.foreign += 1;
                if self.unknown.len() < UNKNOWN_MAX {
                    self.unknown.push_back(wire_len);
                }
            }
        }
        None
    }

    /// The frame that waits with this digest, as near to the frontier as
    /// there is one.
    fn nearest_waiting(&self, digest: u64) -> Option<u64> {
        let mut nearest: Option<u64> = None;
        let mut index = self.waiting[bucket_of(digest)].head;
        for _ in 0..STEPS_MAX {
            let slot = self.slots.get(index as usize)?;
            if slot.expected.digest == digest {
                let position = self.position_of(index);
                let distance = |position: u64| position.abs_diff(self.frontier);
                if nearest.is_none_or(|found| distance(position) < distance(found)) {
                    nearest = Some(position);
                }
                if position >= self.frontier {
                    return nearest;
                }
            }
            if slot.next == NONE {
                return nearest;
            }
            index = slot.next;
        }
        nearest
    }

    /// The frame with this digest that was the last to come.
    fn last_came(&self, digest: u64) -> Option<u64> {
        let mut index = self.came[bucket_of(digest)].tail;
        for _ in 0..STEPS_MAX {
            let slot = self.slots.get(index as usize)?;
            if slot.expected.digest == digest {
                return Some(self.position_of(index));
            }
            index = slot.prev;
        }
        None
    }

    /// Which frame of the trace a slot of the window holds.
    fn position_of(&self, index: u32) -> u64 {
        let first = slot_of(self.begin) as u64;
        let ahead = (u64::from(index) + WINDOW as u64 - first) % WINDOW as u64;
        self.begin + ahead
    }

    #[inline]
    fn came_in_order(&mut self, position: u64, arrival: Nanos) -> Expected {
        if !self.unknown.is_empty() {
            self.pair_changed(position);
        }
        let follows = position == self.frontier && position > 0;
        let next = follows && !std::mem::take(&mut self.gave_up);
        let expected = self.slots[slot_of(position)].expected;
        self.against.came(expected.due, arrival, next);
        self.mark_came(position);
        self.frontier = position + 1;
        self.counts.frames = self.frontier;
        expected
    }

    /// Frames that were not found stand for frames of the same length that
    /// are missing in the same place.
    #[cold]
    fn pair_changed(&mut self, position: u64) {
        let end = position.min(self.frontier + UNKNOWN_MAX as u64);
        let mut from = self.frontier;
        for wire_len in &self.unknown {
            let same = |missing: &u64| {
                let slot = &self.slots[slot_of(*missing)];
                slot.expected.wire_len == *wire_len
            };
            let Some(missing) = (from..end).find(same) else {
                continue;
            };
            let index = slot_of(missing);
            unlink(&mut self.slots, &mut self.waiting, index);
            self.slots[index].state = State::Changed;
            self.counts.changed += 1;
            self.counts.foreign -= 1;
            from = missing + 1;
        }
        self.unknown.clear();
    }

    #[inline]
    fn mark_came(&mut self, position: u64) {
        let index = slot_of(position);
        unlink(&mut self.slots, &mut self.waiting, index);
        self.slots[index].state = State::Came;
        append(&mut self.slots, &mut self.came, index);
        self.counts.matched += 1;
    }

    /// As of now: what is missing before the last frame that came is lost.
    pub(super) fn counts(&self) -> Counts {
        let waits = |position: &u64| self.slots[slot_of(*position)].state == State::Waiting;
        let missing = (self.begin..self.frontier).filter(waits).count() as u64;
        Counts {
            lost: self.counts.lost + missing,
            behind_last: self.end - self.frontier,
            ..self.counts
        }
    }

    /// The report, without what the trace's reader knows.
    pub(super) fn report(&self) -> TraceReport {
        let counts = self.counts();
        TraceReport {
            frames: counts.frames,
            matched: counts.matched,
            lost: counts.lost,
            duplicates: counts.duplicates,
            reordered: counts.reordered,
            changed: counts.changed,
            foreign: counts.foreign,
            behind_last: counts.behind_last,
            timing: self.against.report(),
            ..TraceReport::default()
        }
    }
}

/// Puts a slot at its chain's end.
#[inline]
fn append(slots: &mut [Slot], chains: &mut [Chain], index: usize) {
    let chain = &mut chains[bucket_of(slots[index].expected.digest)];
    let tail = chain.tail;
    slots[index].prev = tail;
    slots[index].next = NONE;
    match slots.get_mut(tail as usize) {
        Some(last) => last.next = index as u32,
        None => chain.head = index as u32,
    }
    chain.tail = index as u32;
}

/// Takes a slot out of its chain.
#[inline]
fn unlink(slots: &mut [Slot], chains: &mut [Chain], index: usize) {
    let chain = &mut chains[bucket_of(slots[index].expected.digest)];
    let Slot { prev, next, .. } = slots[index];
    match slots.get_mut(prev as usize) {
        Some(slot) => slot.next = next,
        None => chain.head = next,
    }
    match slots.get_mut(next as usize) {
        Some(slot) => slot.prev = prev,
        None => chain.tail = prev,
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
