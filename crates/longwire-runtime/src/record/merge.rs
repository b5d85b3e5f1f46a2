//! Merges the batches of recording threads, so that each capture is in time order.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use super::{BATCHES, Batch, Event, Recorder, SpareBatches};

/// Time by which a thread may record later than another before its frames are out of order. If a
/// thread records nothing, the frames of the others wait so long.
const LAG_MAX: Nanos = Nanos::from_millis(100);

/// Maximum number of unwritten bytes, so that a fast one-way transfer stays in the cache.
const UNWRITTEN_MAX: usize = 8 << 20;

/// The unwritten batches of one side's threads.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// Number of unwritten batches, and their bytes.
    batches: usize,
    bytes: usize,
    /// Latest recorded time.
    newest: Nanos,
    spare: SpareBatches,
}

/// The unwritten batches of a thread, whose frames are in time order.
#[derive(Default)]
struct Source {
    batches: VecDeque<Batch>,
    /// Number of written events of the first batch.
    written: usize,
    /// Time of the last written frame.
    last: Nanos,
}

impl Source {
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
        let Some(batch) = self.batches.front() else {
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
        recorder.record(batch.of, &batch.events[start..self.written], &batch.bytes)?;
        if self.written < batch.events.len() {
            return Ok(None);
        }
        self.written = 0;
        Ok(self.batches.pop_front())
    }
}

impl Merge {
    pub fn new(sources: usize, spare: SpareBatches) -> Merge {
        Merge {
            sources: (0..sources).map(|_| Source::default()).collect(),
            batches: 0,
            bytes: 0,
            newest: Nanos::ZERO,
            spare,
        }
    }

    /// Adds a thread's next batch.
    pub fn add(&mut self, batch: Batch) {
        let newest = batch.events.iter().rev().find_map(Event::port_time);
        self.newest = self.newest.max(newest.unwrap_or_default());
        self.batches += 1;
        self.bytes += batch.bytes.len();
        let last = self.sources.len() - 1;
        self.sources[batch.source.min(last)]
            .batches
            .push_back(batch);
    }

    /// Writes the events that no thread can precede, or only one that lags by more than
    /// [`LAG_MAX`].
    ///
    /// # Errors
    /// The recorder failed.
    pub fn write(&mut self, recorder: &mut dyn Recorder) -> Result<(), String> {
        self.write_before(self.newest.saturating_sub(LAG_MAX), recorder)
    }

    /// Writes all events.
    ///
    /// # Errors
    /// The recorder failed.
    pub fn write_all(&mut self, recorder: &mut dyn Recorder) -> Result<(), String> {
        self.write_before(Nanos::MAX, recorder)
    }

    /// Writes events while each thread has one, or they are before `horizon`.
    fn write_before(&mut self, horizon: Nanos, recorder: &mut dyn Recorder) -> Result<(), String> {
        loop {
            let is_full = self.batches > BATCHES || self.bytes > UNWRITTEN_MAX;
            let horizon = if is_full { Nanos::MAX } else { horizon };
            let (mut first, mut until) = (None, Nanos::MAX);
            for source in &mut self.sources {
                let at = source.next_at().unwrap_or(horizon);
                match first {
                    Some((time, _)) if time <= at => until = until.min(at),
                    _ => {
                        until = first.map_or(until, |(time, _)| time);
                        first = Some((at, source));
                    }
                }
            }
            let Some((_, source)) = first.filter(|(_, source)| !source.batches.is_empty()) else {
                return Ok(());
            };
            if let Some(batch) = source.write(until, recorder)? {
                self.batches -= 1;
                self.bytes -= batch.bytes.len();
                self.spare.keep(batch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::LinkId;
    use longwire_packet::bridge::PortIndex;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Epoch, Side};

    /// Keeps the source and time of each recorded frame.
    #[derive(Default)]
    struct Keeper(Vec<(usize, u64)>);

    impl Recorder for Keeper {
        fn start(&mut self, _: Epoch) {}

        fn record(&mut self, of: LinkId, events: &[Event], _: &[u8]) -> Result<(), String> {
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

    proptest! {
        #[test]
        fn frames_of_several_threads_are_in_time_order(
            bursts in vec((0..3_usize, 0..50_000_000_u64, vec(0..90_000_000_u64, 1..4)), 0..100),
        ) {
            let mut merge = Merge::new(3, SpareBatches::default());
            let (mut keeper, mut sent) = (Keeper::default(), Vec::new());
            let (mut now, mut last) = (0_u64, [0; 3]);
            for (source, gap, ages) in bursts {
                now += gap;
                let ages = ages.iter().map(|age| now.saturating_sub(*age).max(last[source]));
                let mut times: Vec<u64> = ages.collect();
                times.sort_unstable();
                last[source] = times[times.len() - 1];
                sent.extend(times.iter().map(|time| (source, *time)));
                merge.add(batch(source, &times));
                merge.write(&mut keeper).unwrap();
            }
            merge.write_all(&mut keeper).unwrap();
            prop_assert_eq!((merge.batches, merge.bytes), (0, 0));
            prop_assert!(keeper.0.is_sorted_by_key(|(_, time)| *time));
            sent.sort_unstable();
            keeper.0.sort_unstable();
            prop_assert_eq!(keeper.0, sent);
        }
    }

    #[test]
    fn a_thread_without_frames_delays_the_others_by_the_lag_only() {
        let mut merge = Merge::new(2, SpareBatches::default());
        let mut keeper = Keeper::default();
        let mut recorded = |times: &[u64]| {
            let lag = LAG_MAX.as_nanos();
            merge.add(batch(
                0,
                &times
                    .iter()
                    .map(|tenths| tenths * lag / 10)
                    .collect::<Vec<_>>(),
            ));
            merge.write(&mut keeper).unwrap();
            keeper.0.len()
        };
        assert_eq!(recorded(&[1, 2, 3]), 0);
        assert_eq!(recorded(&[9, 10]), 0);
        assert_eq!(recorded(&[12]), 2);
        assert_eq!(recorded(&[30]), 6);
    }

    #[test]
    fn many_unwritten_bytes_are_written() {
        let mut merge = Merge::new(2, SpareBatches::default());
        let mut keeper = Keeper::default();
        let large = |time| Batch {
            bytes: vec![0; UNWRITTEN_MAX / 4],
            ..batch(0, &[time])
        };
        for time in 0..10 {
            merge.add(large(time));
            merge.write(&mut keeper).unwrap();
        }
        assert_eq!(keeper.0.len(), 6);
    }

    #[test]
    fn a_full_merge_writes_its_first_batch() {
        let mut merge = Merge::new(2, SpareBatches::default());
        let mut keeper = Keeper::default();
        for time in 0..2 * BATCHES as u64 {
            merge.add(batch(1, &[time]));
            merge.write(&mut keeper).unwrap();
        }
        assert_eq!(merge.batches, BATCHES);
        assert_eq!(keeper.0.len(), BATCHES);
    }
}
