//! Frames in order of their numbers, and loss runs among them.

use std::collections::BTreeMap;

/// Maximum number of frames held until earlier frames are known. Only verdicts on frames in the
/// same queue are out of order.
const WAITING_MAX: usize = 1 << 16;

/// Sorts frames by number.
#[derive(Clone, Debug, Default)]
pub struct InOrder<T> {
    /// Number of the next frame, once known.
    next: Option<u64>,
    /// Frames that arrived early.
    waiting: BTreeMap<u64, T>,
}

impl<T> InOrder<T> {
    /// Adds a frame by number. Calls `pass` for each frame that is next in order, with whether
    /// numbers are missing before it.
    pub fn add(&mut self, frame: u64, value: T, mut pass: impl FnMut(T, bool)) {
        // A complete log starts with frame 0. The first number in a part of a log is unknown,
        // because its first row may belong to a later frame.
        if frame == 0 && self.next.is_none() {
            self.next = Some(0);
        }
        if self.next == Some(frame) && self.waiting.is_empty() {
            self.next = frame.checked_add(1);
            pass(value, false);
            return;
        }
        self.waiting.insert(frame, value);
        self.follow(false, &mut pass);
        if self.waiting.len() > WAITING_MAX {
            self.jump(&mut pass);
        }
    }

    /// Calls `pass` for each remaining frame, in order.
    pub fn finish(&mut self, mut pass: impl FnMut(T, bool)) {
        while !self.waiting.is_empty() {
            self.jump(&mut pass);
        }
    }

    fn follow(&mut self, mut is_after_gap: bool, pass: &mut impl FnMut(T, bool)) {
        while let Some(next) = self.next
            && let Some(value) = self.waiting.remove(&next)
        {
            self.next = next.checked_add(1);
            pass(value, is_after_gap);
            is_after_gap = false;
        }
    }

    /// Continues with the first waiting frame; the frames before it are missing.
    fn jump(&mut self, pass: &mut impl FnMut(T, bool)) {
        if let Some((first, _)) = self.waiting.first_key_value() {
            self.next = Some(*first);
            self.follow(true, pass);
        }
    }
}

/// Counts runs of lost frames.
#[derive(Clone, Debug, Default)]
pub struct LossRuns {
    order: InOrder<bool>,
    counts: RunCounts,
    lost: u64,
    frames: u64,
}

/// Current run, and the frequency of each run length.
#[derive(Clone, Debug, Default)]
struct RunCounts {
    run: u64,
    runs: BTreeMap<u64, u64>,
}

impl RunCounts {
    fn add(&mut self, lost: bool, is_after_gap: bool) {
        if (is_after_gap || !lost) && self.run > 0 {
            *self.runs.entry(self.run).or_default() += 1;
            self.run = 0;
        }
        self.run += u64::from(lost);
    }
}

impl LossRuns {
    /// Adds a frame by number, with whether it was lost.
    ///
    /// Numbers may be out of order. A run ends where numbers are missing.
    pub fn add(&mut self, frame: u64, lost: bool) {
        self.frames += 1;
        self.lost += u64::from(lost);
        let counts = &mut self.counts;
        self.order.add(frame, lost, |lost, is_after_gap| {
            counts.add(lost, is_after_gap)
        });
    }

    /// Ends the last run, and returns the frequency of each run length.
    pub fn finish(&mut self) -> &BTreeMap<u64, u64> {
        let counts = &mut self.counts;
        self.order
            .finish(|lost, is_after_gap| counts.add(lost, is_after_gap));
        self.counts.add(false, false);
        self.runs()
    }

    /// Returns the frequency of each run length. Call [`LossRuns::finish`] first.
    pub fn runs(&self) -> &BTreeMap<u64, u64> {
        &self.counts.runs
    }

    /// Returns the number of lost frames and the number of all frames.
    pub fn lost(&self) -> (u64, u64) {
        (self.lost, self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts the runs in a complete, ordered list.
    fn counted(lost: &[bool]) -> BTreeMap<u64, u64> {
        let mut runs = BTreeMap::new();
        for run in lost.split(|lost| !lost).filter(|run| !run.is_empty()) {
            *runs.entry(run.len() as u64).or_default() += 1;
        }
        runs
    }

    proptest! {
        #[test]
        fn runs_are_the_same_in_whatever_order_frames_come(
            lost in proptest::collection::vec(any::<bool>(), 0..300),
            keys in proptest::collection::vec(0..100u64, 300),
            first in 0..3u64,
        ) {
            let mut order: Vec<usize> = (0..lost.len()).collect();
            // Reordered by up to a hundred positions.
            order.sort_by_key(|index| *index as u64 + keys[*index]);
            let mut runs = LossRuns::default();
            for index in order {
                runs.add(first + index as u64, lost[index]);
            }
            prop_assert_eq!(runs.finish(), &counted(&lost));
            let number = lost.iter().filter(|lost| **lost).count() as u64;
            prop_assert_eq!(runs.lost(), (number, lost.len() as u64));
        }
    }

    #[test]
    fn missing_frames_end_a_run_and_do_not_hold_up_the_rest() {
        let mut runs = LossRuns::default();
        for frame in [0, 1, 5, 6, 7] {
            runs.add(frame, true);
        }
        assert_eq!(runs.finish(), &BTreeMap::from([(2, 1), (3, 1)]));

        let mut runs = LossRuns::default();
        runs.add(0, true);
        for frame in 0..4 * WAITING_MAX as u64 {
            runs.add(frame + 10, frame % 2 == 0);
            assert!(runs.order.waiting.len() <= WAITING_MAX);
        }
        let expected = BTreeMap::from([(1, 2 * WAITING_MAX as u64 + 1)]);
        assert_eq!(runs.finish(), &expected);
    }
}
