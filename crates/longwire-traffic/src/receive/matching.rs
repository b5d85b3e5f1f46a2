//! Matches arrivals with the frames of a trace.
//!
//! A window moves along the trace. Digests index two hash tables of chains: one of expected frames,
//! one of frames that have arrived. No memory is allocated per frame. Identical frames match in
//! trace order, because there is no way to find out which of them was lost.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use super::report::TraceReport;
use super::timing::ScheduleComparison;

/// Frames in the window.
const WINDOW: usize = 1 << 18;

/// Maximum number of frames in the window after the last arrival.
const AHEAD: u64 = 1 << 17;

/// Maximum number of unmatched frames that may be paired with missing frames as changed.
const UNKNOWN_MAX: usize = 1024;

/// Maximum number of steps along a chain; only identical frames cause long chains.
const STEPS_MAX: usize = 4096;

/// A frame of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub digest: u64,
    pub due: Nanos,
    pub wire_len: u32,
    /// Departure lateness in nanoseconds, at most 4.29 s; 0 if unknown.
    pub late: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Expected,
    Arrived,
    /// The frame arrived changed.
    Changed,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    expected: Expected,
    state: State,
    /// Previous and next slot in the chain.
    prev: u32,
    next: u32,
}

/// Index value for no slot.
const NONE: u32 = u32::MAX;

/// Head and tail of a chain in trace order.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: u32,
    tail: u32,
}

const EMPTY: Chain = Chain {
    head: NONE,
    tail: NONE,
};

/// A window onto a trace.
pub(super) struct Matching {
    slots: Vec<Slot>,
    /// Expected frames by digest.
    expected: Vec<Chain>,
    /// Frames that have arrived; the latest is at the tail.
    arrived: Vec<Chain>,
    /// Start and end of the window, as positions in the trace.
    begin: u64,
    end: u64,
    /// Position after the last in-order arrival.
    frontier: u64,
    /// Whether frames before the frontier were evicted; a gap that spans them is not measured.
    has_gap: bool,
    /// Counters, without the missing frames in the window.
    counts: TraceReport,
    /// Lengths of unmatched frames since the last in-order arrival.
    unknown: VecDeque<u32>,
    against: ScheduleComparison,
}

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
            expected: vec![EMPTY; WINDOW],
            arrived: vec![EMPTY; WINDOW],
            begin: 0,
            end: 0,
            frontier: 0,
            has_gap: false,
            counts: TraceReport::default(),
            unknown: VecDeque::with_capacity(UNKNOWN_MAX),
            against: ScheduleComparison::default(),
        }
    }

    /// Returns the number of trace frames for which there is room.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        AHEAD.saturating_sub(self.end - self.frontier)
    }

    /// Adds the next frame of the trace. Requires room.
    pub(super) fn expect(&mut self, expected: Expected) {
        if self.end - self.begin == WINDOW as u64 {
            self.forget();
        }
        let index = slot_of(self.end);
        let slot = Slot {
            expected,
            state: State::Expected,
            prev: NONE,
            next: NONE,
        };
        match self.slots.get_mut(index) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
        append(&mut self.slots, &mut self.expected, index);
        self.end += 1;
    }

    /// Adds the next frame of a trace that does not wait for arrivals, such as frames being sent;
    /// evicts the oldest frames if necessary.
    pub(super) fn expect_at_once(&mut self, expected: Expected) {
        self.expect(expected);
        if self.begin > self.frontier {
            self.frontier = self.begin;
            self.has_gap = true;
        }
    }

    /// Evicts the oldest frame from the window.
    fn forget(&mut self) {
        let index = slot_of(self.begin);
        match self.slots[index].state {
            State::Expected => {
                unlink(&mut self.slots, &mut self.expected, index);
                self.counts.lost += 1;
            }
            State::Arrived => unlink(&mut self.slots, &mut self.arrived, index),
            State::Changed => {}
        }
        self.begin += 1;
    }

    /// Matches an arrival. Returns the frame of the trace; `None` for duplicates and unmatched
    /// frames.
    #[inline]
    pub(super) fn match_frame(
        &mut self,
        digest: u64,
        wire_len: u32,
        arrival: Nanos,
    ) -> Option<Expected> {
        let next = self.slots.get(slot_of(self.frontier));
        let is_next = |slot: &Slot| slot.expected.digest == digest;
        if self.frontier < self.end && next.is_some_and(is_next) {
            Some(self.match_in_order(self.frontier, arrival))
        } else {
            self.match_elsewhere(digest, wire_len, arrival)
        }
    }

    #[cold]
    fn match_elsewhere(&mut self, digest: u64, wire_len: u32, arrival: Nanos) -> Option<Expected> {
        let waiting = self.nearest_expected(digest);
        let before = self.last_arrival(digest);
        let far = |position: u64| position.abs_diff(self.frontier);
        match (waiting, before) {
            // A duplicate of a recent frame is more likely than a jump to an identical frame far
            // ahead.
            (Some(position), Some(copy)) if far(copy) <= far(position) => {
                self.counts.duplicates += 1;
            }
            (Some(position), _) if position >= self.frontier => {
                return Some(self.match_in_order(position, arrival));
            }
            (Some(position), _) => {
                self.counts.reordered += 1;
                self.mark_arrived(position);
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

    /// Returns the expected frame with this digest that is closest to the frontier.
    fn nearest_expected(&self, digest: u64) -> Option<u64> {
        let mut nearest: Option<u64> = None;
        let mut index = self.expected[bucket_of(digest)].head;
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

    /// Returns the latest arrival with this digest.
    fn last_arrival(&self, digest: u64) -> Option<u64> {
        let mut index = self.arrived[bucket_of(digest)].tail;
        for _ in 0..STEPS_MAX {
            let slot = self.slots.get(index as usize)?;
            if slot.expected.digest == digest {
                return Some(self.position_of(index));
            }
            index = slot.prev;
        }
        None
    }

    /// Returns the position of a slot.
    fn position_of(&self, index: u32) -> u64 {
        let first = slot_of(self.begin) as u64;
        let ahead = (u64::from(index) + WINDOW as u64 - first) % WINDOW as u64;
        self.begin + ahead
    }

    #[inline]
    fn match_in_order(&mut self, position: u64, arrival: Nanos) -> Expected {
        if !self.unknown.is_empty() {
            self.pair_changed(position);
        }
        let follows = position == self.frontier && position > 0;
        let next = follows && !std::mem::take(&mut self.has_gap);
        let expected = self.slots[slot_of(position)].expected;
        self.against.record(expected.due, arrival, next);
        self.mark_arrived(position);
        self.frontier = position + 1;
        self.counts.frames = self.frontier;
        expected
    }

    /// Pairs unmatched frames with missing frames of the same length in the same gap.
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
            unlink(&mut self.slots, &mut self.expected, index);
            self.slots[index].state = State::Changed;
            self.counts.changed += 1;
            self.counts.foreign -= 1;
            from = missing + 1;
        }
        self.unknown.clear();
    }

    #[inline]
    fn mark_arrived(&mut self, position: u64) {
        let index = slot_of(position);
        unlink(&mut self.slots, &mut self.expected, index);
        self.slots[index].state = State::Arrived;
        append(&mut self.slots, &mut self.arrived, index);
        self.counts.matched += 1;
    }

    /// Returns the report, without the fields of the trace reader. Missing frames before the last
    /// arrival count as lost.
    pub(super) fn report(&self) -> TraceReport {
        let waits = |position: &u64| self.slots[slot_of(*position)].state == State::Expected;
        let missing = (self.begin..self.frontier).filter(waits).count() as u64;
        TraceReport {
            lost: self.counts.lost + missing,
            behind_last: self.end - self.frontier,
            timing: self.against.report(),
            ..self.counts.clone()
        }
    }
}

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
