//! Loss, duplication and reordering of numbered packets.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use super::report::SequenceReport;
use super::spread::Distribution;

/// Range of numbers below the highest within which duplicates are detected.
const WINDOW: u64 = 1 << 17;

/// Maximum number of runs kept to compute the reordering extent.
const RUNS: usize = 4096;

/// Classification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Classification {
    /// A new highest number; `next` if it is one above the number of the previous packet.
    InOrder { next: bool },
    /// A number below an earlier one.
    Reordered,
    /// A number already received.
    Duplicate,
    /// A number too far below the highest.
    BeyondWindow,
}

/// Consecutive numbers received in order.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    /// Number of packets received before the run.
    place: u64,
    arrival: Nanos,
}

/// Numbers received in one stream.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// One bit per number in the window, indexed by number modulo the window.
    seen: Box<[u64]>,
    runs: VecDeque<Run>,
    /// Numbers and counters so far, without losses and distributions.
    counts: SequenceReport,
    /// Whether the last packet had the highest number.
    last_in_order: bool,
    extent: Distribution,
    late: Distribution,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence {
            seen: vec![0; (WINDOW / 64) as usize].into(),
            runs: VecDeque::new(),
            counts: SequenceReport::default(),
            last_in_order: false,
            extent: Distribution::with_digits(2),
            late: Distribution::with_digits(2),
        }
    }
}

impl Sequence {
    /// Records the arrival of a packet number and classifies it.
    #[inline]
    pub(super) fn record(&mut self, number: u64, arrival: Nanos) -> Classification {
        let class = self.judge(number, arrival);
        self.last_in_order = matches!(class, Classification::InOrder { .. });
        class
    }

    #[inline]
    fn judge(&mut self, number: u64, arrival: Nanos) -> Classification {
        if self.counts.received == 0 {
            (self.counts.first, self.counts.last) = (number, number);
            self.begin_run(number, arrival);
            self.mark(number);
            return Classification::InOrder { next: false };
        }
        if number <= self.counts.last {
            return self.judge_low(number, arrival);
        }
        let next = number == self.counts.last + 1 && self.last_in_order;
        if number - self.counts.last >= WINDOW {
            self.seen.fill(0);
        } else {
            (self.counts.last + 1..=number).for_each(|passed| self.clear(passed));
        }
        if !next {
            self.begin_run(number, arrival);
        }
        self.counts.last = number;
        self.mark(number);
        Classification::InOrder { next }
    }

    #[cold]
    fn judge_low(&mut self, number: u64, arrival: Nanos) -> Classification {
        if self.counts.last - number >= WINDOW {
            self.counts.beyond_window += 1;
            return Classification::BeyondWindow;
        }
        let (word, bit) = place(number);
        if self.seen[word] & bit != 0 {
            self.counts.duplicates += 1;
            return Classification::Duplicate;
        }
        self.counts.first = self.counts.first.min(number);
        self.counts.reordered += 1;
        // The earliest packet with a greater number was in order, so its run starts above this
        // number, which had not arrived.
        let after = self.runs.partition_point(|run| run.first < number);
        if let Some(run) = self.runs.get(after) {
            self.extent
                .record((self.counts.received - run.place) as i64);
            let late = arrival.saturating_sub(run.arrival);
            self.late.record(late.as_nanos() as i64);
        }
        self.mark(number);
        Classification::Reordered
    }

    fn begin_run(&mut self, first: u64, arrival: Nanos) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(Run {
            first,
            place: self.counts.received,
            arrival,
        });
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        self.counts.received += 1;
    }

    #[inline]
    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }

    pub(super) fn report(&self) -> SequenceReport {
        let counts = &self.counts;
        if counts.received == 0 {
            return SequenceReport::default();
        }
        SequenceReport {
            lost: (counts.last - counts.first + 1).saturating_sub(counts.received),
            reordered_ratio: counts.reordered as f64 / counts.received as f64,
            extent: self.extent.spread(1.0),
            late_us: self.late.spread(1e3),
            ..self.counts
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
