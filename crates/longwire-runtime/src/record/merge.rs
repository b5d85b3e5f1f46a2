//! Merges the batches of all record handles, so that each capture is in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;

use super::{BATCHES, Batch, Recorder, SpareBatches};

/// Maximum time from a frame's arrival or handover until its handle records it.
const LAG_MAX: Nanos = Nanos::from_millis(100);

/// Number of unwritten bytes above which the writer does not wait for idle handles, so that a fast
/// one-way transfer stays in the cache.
const UNWRITTEN_MAX: usize = 8 << 20;

/// Time of a handle's oldest event that has not been handed over; `Nanos::MAX` without one.
#[derive(Debug)]
pub(super) struct PendingTime(AtomicU64);

impl Default for PendingTime {
    fn default() -> PendingTime {
        PendingTime(AtomicU64::new(u64::MAX))
    }
}

impl PendingTime {
    /// Sets the time before the handle records the first event of a batch, and `Nanos::MAX` after
    /// it has handed over the batch: a reader of `Nanos::MAX` then finds the batch in the queue.
    pub fn set(&self, time: Nanos) {
        self.0.store(time.as_nanos(), Ordering::Release);
    }

    fn get(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Ordering::Acquire))
    }
}

/// The unwritten batches of one side's handles.
pub(super) struct Merge {
    sources: Vec<SourceQueue>,
    /// Times of the sources' next events.
    heads: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Number of unwritten batches, and their bytes.
    batches: usize,
    bytes: usize,
    /// Lower bound of the times that idle handles record from the last look on.
    idle_from: Nanos,
    spare: SpareBatches,
}

/// The unwritten batches of a handle, whose frames are in time order.
struct SourceQueue {
    batches: VecDeque<Batch>,
    /// Number of written events of the first batch.
    written: usize,
    /// Time of the last written frame.
    last: Nanos,
    pending: Arc<PendingTime>,
    /// Pending time at the last look.
    pending_from: Nanos,
}

impl SourceQueue {
    fn new(pending: Arc<PendingTime>) -> SourceQueue {
        SourceQueue {
            batches: VecDeque::new(),
            written: 0,
            last: Nanos::ZERO,
            pending,
            pending_from: Nanos::ZERO,
        }
    }

    /// Returns the time of the next event; `None` without one. Events of links have the time of
    /// the frame before them.
    fn next_at(&self) -> Option<Nanos> {
        let event = self.batches.front()?.events.get(self.written)?;
        Some(event.port_time().unwrap_or(self.last))
    }

    /// Writes the events of the first batch up to a time. Returns the batch once it is written.
    fn write(
        &mut self,
        until: Nanos,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Batch>, String> {
        let Some(batch) = self.batches.front_mut() else {
            return Ok(None);
        };
        let start = self.written;
        for event in &batch.events[start..] {
            match event.port_time() {
                Some(time) if time > until => break,
                Some(time) => self.last = time,
                None => {}
            }
            self.written += 1;
        }
        recorder.record(
            batch.of,
            &batch.events[start..self.written],
            &mut batch.bytes,
        )?;
        if self.written < batch.events.len() {
            return Ok(None);
        }
        self.written = 0;
        Ok(self.batches.pop_front())
    }
}

impl Merge {
    pub fn new(pending: Vec<Arc<PendingTime>>, spare: SpareBatches) -> Merge {
        Merge {
            sources: pending.into_iter().map(SourceQueue::new).collect(),
            heads: BinaryHeap::new(),
            batches: 0,
            bytes: 0,
            idle_from: Nanos::ZERO,
            spare,
        }
    }

    /// Notes the events that handles may still hand over. Then [add](Merge::add) all batches that
    /// they have handed over.
    pub fn look(&mut self, now: Nanos) {
        self.idle_from = now.saturating_sub(LAG_MAX);
        for source in &mut self.sources {
            source.pending_from = source.pending.get();
        }
    }

    /// Adds a handle's next batch.
    pub fn add(&mut self, batch: Batch) {
        self.batches += 1;
        self.bytes += batch.bytes.len();
        let index = batch.source;
        let source = &mut self.sources[index];
        source.batches.push_back(batch);
        if source.batches.len() == 1
            && let Some(at) = source.next_at()
        {
            self.heads.push(Reverse((at, index)));
        }
    }

    /// Drops all batches.
    pub fn discard(&mut self) {
        self.heads.clear();
        self.sources
            .iter_mut()
            .for_each(|source| source.batches.clear());
    }

    /// Writes the events that no other handle can precede; all events if `is_last`.
    ///
    /// # Errors
    /// The recorder failed.
    pub fn write(&mut self, is_last: bool, recorder: &mut dyn Recorder) -> Result<(), String> {
        let is_full = self.batches > BATCHES || self.bytes > UNWRITTEN_MAX;
        let idle_from = if is_full { Nanos::MAX } else { self.idle_from };
        // Returns the earliest time that a source without batches may still have.
        let earliest = |source: &SourceQueue| {
            if is_last {
                Nanos::MAX
            } else {
                source.pending_from.min(idle_from)
            }
        };
        let empty = self
            .sources
            .iter()
            .filter(|source| source.batches.is_empty());
        let mut horizon = empty.map(earliest).min().unwrap_or(Nanos::MAX);
        while let Some(Reverse((time, index))) = self.heads.pop() {
            if time > horizon {
                self.heads.push(Reverse((time, index)));
                break;
            }
            let until = self
                .heads
                .peek()
                .map_or(horizon, |head| head.0.0.min(horizon));
            let source = &mut self.sources[index];
            if let Some(batch) = source.write(until, recorder)? {
                self.batches -= 1;
                self.bytes -= batch.bytes.len();
                self.spare.keep(batch);
            }
            match source.next_at() {
                Some(at) => self.heads.push(Reverse((at, index))),
                None => horizon = horizon.min(earliest(source)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::LinkId;
    use longwire_packet::bridge::PortIndex;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Epoch, Event, Side};

    /// Keeps the source and time of each recorded frame.
    #[derive(Default)]
    struct Keeper(Vec<(usize, u64)>);

    impl Recorder for Keeper {
        fn start(&mut self, _: Epoch) {}

        fn record(&mut self, of: LinkId, events: &[Event], _: &mut [u8]) -> Result<(), String> {
            let times = events.iter().filter_map(Event::port_time);
            self.0
                .extend(times.map(|time| (of.0 as usize, time.as_nanos())));
            Ok(())
        }

        fn finish(&mut self) -> Result<(), String> {
            Ok(())
        }
    }

    fn batch(source: usize, times: &[u64]) -> Batch {
        let event = |time: &u64| Event::Entered {
            port: PortIndex(source as u16),
            arrival: Nanos::from_nanos(*time),
            wire_len: 0,
            bytes: 0..0,
        };
        Batch {
            of: LinkId(source as u32),
            side: Side::In,
            source,
            events: times.iter().map(event).collect(),
            bytes: Vec::new(),
        }
    }

    fn merge(sources: usize) -> Merge {
        let pending = (0..sources).map(|_| Arc::default()).collect();
        Merge::new(pending, SpareBatches::default())
    }

    const LAG: u64 = LAG_MAX.as_nanos();

    proptest! {
        /// Handles record frames up to the lag late, and hand them over at any later time.
        #[test]
        fn frames_of_several_handles_are_in_time_order(
            steps in vec((0..3_usize, 0..3 * LAG, 0..LAG, 0..4_u8), 0..200),
        ) {
            let mut merge = merge(3);
            let (mut keeper, mut sent) = (Keeper::default(), Vec::new());
            let (mut now, mut last) = (LAG, [0; 3]);
            let mut held: [Vec<u64>; 3] = Default::default();
            for (source, gap, age, action) in steps {
                now += gap / 4;
                let time = last[source].max(now - age);
                last[source] = time;
                let pending = Arc::clone(&merge.sources[source].pending);
                if held[source].is_empty() {
                    pending.set(Nanos::from_nanos(time));
                }
                held[source].push(time);
                sent.push((source, time));
                merge.look(Nanos::from_nanos(now));
                if action == 0 {
                    merge.add(batch(source, &std::mem::take(&mut held[source])));
                    pending.set(Nanos::MAX);
                }
                if action < 3 {
                    merge.write(false, &mut keeper).unwrap();
                }
            }
            for (source, times) in held.iter().enumerate().filter(|(_, times)| !times.is_empty()) {
                merge.add(batch(source, times));
            }
            merge.write(true, &mut keeper).unwrap();
            prop_assert_eq!((merge.batches, merge.bytes), (0, 0));
            prop_assert!(keeper.0.is_sorted_by_key(|(_, time)| *time));
            sent.sort_unstable();
            keeper.0.sort_unstable();
            prop_assert_eq!(keeper.0, sent);
        }
    }

    #[test]
    fn idle_handles_delay_the_others_by_the_lag_only() {
        let mut merge = merge(2);
        let mut keeper = Keeper::default();
        merge.add(batch(0, &[1, 2, LAG]));
        for (now, written) in [(LAG, 0), (LAG + 2, 2), (2 * LAG, 3)] {
            merge.look(Nanos::from_nanos(now));
            merge.write(false, &mut keeper).unwrap();
            assert_eq!(keeper.0.len(), written);
        }
    }

    #[test]
    fn many_batches_and_bytes_wait_for_pending_events_only() {
        let large = |time| Batch {
            bytes: vec![0; UNWRITTEN_MAX / 4],
            ..batch(0, &[time])
        };
        let small = |time| batch(0, &[time]);
        let kinds: [(&dyn Fn(u64) -> Batch, u64); 2] = [(&large, 4), (&small, BATCHES as u64)];
        for (make, most) in kinds {
            let mut merge = merge(2);
            let mut keeper = Keeper::default();
            for time in 0..=most {
                merge.look(Nanos::ZERO);
                merge.write(false, &mut keeper).unwrap();
                assert_eq!(keeper.0.len(), 0);
                merge.add(make(time + 1));
            }
            merge.sources[1].pending.set(Nanos::from_nanos(3));
            merge.look(Nanos::ZERO);
            merge.write(false, &mut keeper).unwrap();
            assert_eq!(keeper.0, [(0, 1), (0, 2), (0, 3)]);
        }
    }
}
