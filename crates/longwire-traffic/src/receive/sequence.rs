//! Losses, duplicates and reordering among numbered packets.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use super::report::SequenceReport;
use super::spread::Distribution;

/// So far below the highest number a packet is still judged.
const WINDOW: u64 = 1 << 17;

/// Stretches of numbers without a hole that are remembered, to find what a
/// packet out of order should have come before.
const RUNS: usize = 4096;

/// The place of a packet among those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Its number is the highest so far; `next` if it is one above the highest
    /// before, and no other packet came between.
    InOrder { next: bool },
    /// Its number is below one that came before.
    Reordered,
    /// Its number had come.
    Duplicate,
    /// Its number is too old to be known.
    BeyondWindow,
}

/// Consecutive numbers that came in order.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    /// How many packets had come before its first.
    place: u64,
    arrival: Nanos,
}

/// One stream's numbers.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// A bit for each number of the window, at its place modulo the window.
    seen: Box<[u64]>,
    runs: VecDeque<Run>,
    first: u64,
    highest: u64,
    received: u64,
    duplicates: u64,
    reordered: u64,
    beyond: u64,
    /// The number that came last was the highest.
    last_in_order: bool,
    extent: Distribution,
    late: Distribution,
}

impl Sequence {
    pub(super) fn new() -> Sequence {
        Sequence {
            seen: vec![0; (WINDOW / 64) as usize].into(),
            runs: VecDeque::new(),
            first: 0,
            highest: 0,
            received: 0,
            duplicates: 0,
            reordered: 0,
            beyond: 0,
            last_in_order: false,
            extent: Distribution::with_digits(2),
            late: Distribution::with_digits(2),
        }
    }

    /// A packet with this number came.
    #[inline]
    pub(super) fn came(&mut self, number: u64, arrival: Nanos) -> Came {
        let came = self.judge(number, arrival);
        self.last_in_order = matches!(came, Came::InOrder { .. });
        came
    }

    #[inline]
    fn judge(&mut self, number: u64, arrival: Nanos) -> Came {
        if self.received == 0 {
            (self.first, self.highest) = (number, number);
            self.begin_run(number, arrival);
            self.mark(number);
            return Came::InOrder { next: false };
        }
        if number <= self.highest {
            return self.judge_low(number, arrival);
        }
        let next = number == self.highest + 1 && self.last_in_order;
        if number - self.highest >= WINDOW {
            self.seen.fill(0);
        } else {
            (self.highest + 1..=number).for_each(|passed| self.clear(passed));
        }
        if !next {
            self.begin_run(number, arrival);
        }
        self.highest = number;
        self.mark(number);
        Came::InOrder { next }
    }

    #[cold]
    fn judge_low(&mut self, number: u64, arrival: Nanos) -> Came {
        if self.highest - number >= WINDOW {
            self.beyond += 1;
            return Came::BeyondWindow;
        }
        let (word, bit) = place(number);
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return Came::Duplicate;
        }
        self.first = self.first.min(number);
        self.reordered += 1;
        // Of the packets that it should have come before, the first to come
        // was in order, and its run begins above this number: the number
        // itself was not there to be part of one.
        let after = self.runs.partition_point(|run| run.first < number);
        if let Some(run) = self.runs.get(after) {
            self.extent.record((self.received - run.place) as i64);
            let late = arrival.saturating_sub(run.arrival);
            self.late.record(late.as_nanos() as i64);
        }
        self.mark(number);
        Came::Reordered
    }

    fn begin_run(&mut self, first: u64, arrival: Nanos) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(Run {
            first,
            place: self.received,
            arrival,
        });
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        self.received += 1;
    }

    #[inline]
    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }

    pub(super) fn report(&self) -> SequenceReport {
        if self.received == 0 {
            return SequenceReport::default();
        }
        SequenceReport {
            first: self.first,
            last: self.highest,
            received: self.received,
            lost: (self.highest - self.first + 1).saturating_sub(self.received),
            duplicates: self.duplicates,
            reordered: self.reordered,
            reordered_ratio: self.reordered as f64 / self.received as f64,
            extent: self.extent.spread(1.0),
            late_us: self.late.spread(1e3),
            beyond_window: self.beyond,
        }
    }
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
