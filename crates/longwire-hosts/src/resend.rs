//! Recovery of batches lost in the underlay.
//!
//! A session's batches are numbered. A receiver requests missing batches, and the sender resends a
//! batch while one of its frames can still arrive in time. If no batch follows a lost one, the
//! sender's *tail* record with the next number reveals the loss.

use std::collections::{BTreeMap, VecDeque};

use longwire_engine::Nanos;

/// Maximum memory in bytes for one host's kept batches.
const KEPT_MAX: usize = 32 << 20;
/// Maximum buffers kept for reuse.
const SPARE_MAX: usize = 256;
/// Maximum number of missing batches that are requested; if there are more, the oldest count as
/// lost.
const MISSING_MAX: usize = 4096;
/// Maximum number of requests per batch.
const ASKS_MAX: u8 = 4;
/// Number of tails after the last batch. One would not suffice, because it may be lost.
const TAILS: u8 = 2;
/// Bounds of the reordering delay, in nanoseconds.
const REORDER_MIN: u64 = 50_000;
const REORDER_MAX: u64 = 1_000_000;
/// Wait for a requested batch beyond 1.5 round trips, in nanoseconds.
const RETRY_EXTRA: u64 = 500_000;

/// Timeouts derived from the underlay's round trip.
#[derive(Clone, Copy, Debug)]
pub struct ResendTimes {
    round_trip: Nanos,
}

impl ResendTimes {
    /// Returns the timeouts for a round trip in nanoseconds.
    pub fn of_round_trip(round_trip_ns: u64) -> ResendTimes {
        ResendTimes {
            round_trip: Nanos::from_nanos(round_trip_ns),
        }
    }

    /// Returns the reordering delay: the wait before a late batch is requested or a tail sent.
    fn reorder(self) -> Nanos {
        let eighth = self.round_trip.as_nanos() / 8;
        Nanos::from_nanos(eighth.clamp(REORDER_MIN, REORDER_MAX))
    }

    /// Returns the wait before a request is repeated.
    fn retry(self) -> Nanos {
        Nanos::from_nanos(self.round_trip.as_nanos() * 3 / 2 + RETRY_EXTRA)
    }

    /// Returns whether a datagram sent now would arrive before `end`.
    fn comes_before(self, now: Nanos, end: Nanos) -> bool {
        now.saturating_add(Nanos::from_nanos(self.round_trip.as_nanos() / 2)) < end
    }
}

/// Reconstructs a batch number near `near` from its low half.
pub fn whole(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(ahead.into())
}

/// Sent batches, kept until their frames are due.
#[derive(Debug, Default)]
pub struct SentBatches {
    kept: VecDeque<SentBatch>,
    /// Number of the next batch.
    next: u64,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    tails_left: u8,
    tail_at: Nanos,
}

#[derive(Debug)]
struct SentBatch {
    records: Vec<u8>,
    /// Latest release in the batch, on this host's clock.
    deadline: Nanos,
}

impl SentBatches {
    /// Returns the low half of the next batch number.
    pub fn next(&self) -> u32 {
        self.next as u32
    }

    /// Keeps a batch sent now. Returns an empty buffer for the next batch.
    pub fn keep(
        &mut self,
        records: Vec<u8>,
        deadline: Nanos,
        now: Nanos,
        times: ResendTimes,
    ) -> Vec<u8> {
        self.trim(now);
        self.next += 1;
        self.bytes += records.len();
        self.kept.push_back(SentBatch { records, deadline });
        self.tails_left = TAILS;
        self.tail_at = now.saturating_add(times.reorder());
        self.spare.pop().unwrap_or_default()
    }

    /// Drops batches whose deadline has passed, and the oldest beyond the memory limit.
    pub fn trim(&mut self, now: Nanos) {
        while let Some(first) = self.kept.front()
            && (first.deadline <= now || self.bytes > KEPT_MAX)
        {
            let first = self.kept.pop_front();
            let mut records = first.map(|first| first.records).unwrap_or_default();
            self.bytes -= records.len();
            records.clear();
            if self.spare.len() < SPARE_MAX {
                self.spare.push(records);
            }
        }
    }

    /// Returns a batch to resend, if it is available and would arrive in time.
    pub fn resend(&self, low: u32, now: Nanos, times: ResendTimes) -> Option<&[u8]> {
        let back = self.next.checked_sub(whole(low, self.next))?;
        let index = self.kept.len().checked_sub(usize::try_from(back).ok()?)?;
        let batch = self.kept.get(index)?;
        let is_useful = times.comes_before(now, batch.deadline);
        is_useful.then_some(batch.records.as_slice())
    }

    /// Returns when a tail is due.
    pub fn tail_at(&self) -> Option<Nanos> {
        (self.tails_left > 0).then_some(self.tail_at)
    }

    /// Processes a due tail. Returns whether the last batch could still be resent in time.
    pub fn take_tail(&mut self, now: Nanos, times: ResendTimes) -> bool {
        let last = self.kept.back().map(|batch| batch.deadline);
        // The tail and the request for the batch take one round trip.
        let asked = now.saturating_add(times.round_trip);
        let is_useful = last.is_some_and(|deadline| times.comes_before(asked, deadline));
        self.tails_left = if is_useful { self.tails_left - 1 } else { 0 };
        self.tail_at = now.saturating_add(times.retry());
        is_useful
    }
}

/// Batches missing from the sequence.
#[derive(Debug, Default)]
pub struct MissingBatches {
    /// The number after the highest known number.
    next: u64,
    missing: BTreeMap<u64, MissingBatch>,
    /// A lower bound on all request times.
    ask_at: Option<Nanos>,
}

#[derive(Debug)]
struct MissingBatch {
    /// `None` after the last request.
    ask_at: Option<Nanos>,
    asks: u8,
}

impl MissingBatches {
    /// Records a batch. Returns `false` for a duplicate.
    pub fn accept(&mut self, low: u32, now: Nanos, times: ResendTimes) -> bool {
        let number = whole(low, self.next);
        if number < self.next {
            return self.missing.remove(&number).is_some();
        }
        self.miss_until(number, now, times);
        self.next = number + 1;
        true
    }

    /// Records the sender's next number: all batches before it were sent.
    pub fn hear_of(&mut self, low: u32, now: Nanos, times: ResendTimes) {
        let number = whole(low, self.next);
        if number > self.next {
            self.miss_until(number, now, times);
            self.next = number;
        }
    }

    fn miss_until(&mut self, end: u64, now: Nanos, times: ResendTimes) {
        let first = self.next.max(end.saturating_sub(MISSING_MAX as u64));
        let ask_at = now.saturating_add(times.reorder());
        for number in first..end {
            let batch = MissingBatch {
                ask_at: Some(ask_at),
                asks: 0,
            };
            self.missing.insert(number, batch);
            self.ask_at = Some(self.ask_at.map_or(ask_at, |before| before.min(ask_at)));
        }
        while self.missing.len() > MISSING_MAX {
            self.missing.pop_first();
        }
    }

    /// Returns when to request batches.
    pub fn ask_at(&self) -> Option<Nanos> {
        self.ask_at
    }

    /// Returns the low halves of at most `max` numbers to request now.
    pub fn ask(&mut self, now: Nanos, max: usize, times: ResendTimes) -> Vec<u32> {
        let mut asked = Vec::new();
        let mut next: Option<Nanos> = None;
        for (number, batch) in &mut self.missing {
            let is_due = batch.ask_at.is_some_and(|at| at <= now);
            if is_due && asked.len() < max {
                asked.push(*number as u32);
                batch.asks += 1;
                let again = now.saturating_add(times.retry());
                batch.ask_at = (batch.asks < ASKS_MAX).then_some(again);
            }
            next = next.into_iter().chain(batch.ask_at).min();
        }
        self.ask_at = next;
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn at(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn times() -> ResendTimes {
        ResendTimes::of_round_trip(MILLI)
    }

    #[test]
    fn batches_are_resent_while_they_can_arrive_in_time() {
        let mut sent = SentBatches::default();
        for number in 0..3 {
            assert_eq!(sent.next(), number);
            let records = vec![number as u8; 10];
            sent.keep(records, at(10 + u64::from(number)), at(1), times());
        }
        assert_eq!(sent.resend(1, at(2), times()), Some(&[1; 10][..]));
        assert_eq!(sent.resend(3, at(2), times()), None, "not sent yet");
        assert_eq!(sent.resend(u32::MAX, at(2), times()), None);
        assert_eq!(sent.resend(0, at(10), times()), None, "too late");
        sent.trim(at(11));
        assert_eq!(sent.resend(1, at(11), times()), None);
        assert!(sent.resend(2, at(11), times()).is_some());
        assert!(sent.keep(vec![9; 4], at(20), at(11), times()).is_empty());
        assert_eq!(sent.resend(3, at(11), times()), Some(&[9; 4][..]));
        assert!(sent.take_tail(at(12), times()) && sent.take_tail(at(13), times()));
        assert_eq!(sent.tail_at(), None);
    }

    #[test]
    fn each_batch_is_accepted_once_and_missing_ones_are_asked_for() {
        // The low halves of the numbers wrap around.
        let mut missing = MissingBatches {
            next: u64::from(u32::MAX) - 1,
            ..MissingBatches::default()
        };
        let low = |number: u64| (u64::from(u32::MAX) - 1 + number) as u32;
        assert!(missing.accept(low(0), at(1), times()));
        assert!(!missing.accept(low(0), at(1), times()));
        assert!(missing.accept(low(4), at(1), times()));
        assert!(missing.accept(low(2), at(1), times()), "overtaken");
        assert!(missing.ask(at(1), 9, times()).is_empty(), "on its way");
        assert_eq!(missing.ask(at(2), 9, times()), [low(1), low(3)]);
        assert!(missing.ask_at() > Some(at(2)));
        assert!(missing.accept(low(3), at(3), times()));
        assert!(!missing.accept(low(3), at(3), times()));
        for round in 1..ASKS_MAX {
            assert_eq!(missing.ask(at(10 * u64::from(round)), 9, times()), [low(1)]);
        }
        assert_eq!(
            (missing.ask(at(90), 9, times()).len(), missing.ask_at()),
            (0, None)
        );
        assert!(missing.accept(low(1), at(99), times()), "late, but it came");
        missing.hear_of(low(6), at(100), times());
        missing.hear_of(low(3), at(100), times());
        assert_eq!(missing.ask(at(110), 9, times()), [low(5)]);
        assert!(missing.accept(low(100_000), at(111), times()));
        assert!(missing.missing.len() <= MISSING_MAX);
    }
}
