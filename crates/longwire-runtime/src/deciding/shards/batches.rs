//! The calling thread's work: fills and distributes batches, and merges the output.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;

use longwire_engine::{DropReason, FrameMeta, LinkId, Nanos};
use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{Classifier, Order as RuleOrder};

use super::Shards;
use super::batch::{BatchFrame, FrameBatch, RoundInput};
use super::shard::{BatchEntry, Shard};
use crate::deciding::core::Core;
use crate::deciding::frames::{Arriving, Exit, OutputFrame};
use crate::deciding::state::{CoreState, PASSING, Target};

/// The order in which frames leave: by release, last link and shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OutputKey {
    release: Nanos,
    line: LinkId,
    index: u32,
}

impl OutputKey {
    /// Returns the key of a shard's next frame to hand out.
    #[inline]
    fn of_next((index, shard): (usize, &Shard)) -> Option<OutputKey> {
        let next = shard.leaving.get(shard.handed_out)?;
        Some(OutputKey {
            release: next.release,
            line: next.line,
            index: index as u32,
        })
    }
}

impl Core {
    /// Adds a frame to the batch, and copies its bytes if they are on a line. Orders up to its
    /// arrival must have been applied. Returns whether the batch is full and must be processed.
    pub(in crate::deciding) fn enter_batch(
        &mut self,
        port: PortIndex,
        meta: FrameMeta,
        arriving: Arriving<'_>,
    ) -> bool {
        self.advanced = meta.arrival;
        self.entered = meta.arrival;
        let since = meta.arrival.saturating_sub(self.epoch);
        let Shards { first, batch, .. } = &mut self.shards;
        let CoreState {
            frames, recorder, ..
        } = &mut first.state;
        let (bytes, part) = match &arriving {
            Arriving::Bytes(bytes) => (*bytes, None),
            Arriving::Frame(frame) => (frames.bytes(frame), frames.part(frame)),
        };
        let uses_ports = self.classifier.uses_transport();
        let ports = uses_ports.then(|| self.datagrams.of_later(bytes)).flatten();
        if let Some(recorder) = recorder {
            recorder.entered(port, meta, bytes);
        }
        if let Some(exit) = Exit::of(self.bridge.forward(since, port, bytes), port) {
            let lost = exit.is_one_of(&self.lost_ports);
            batch.push((port, meta), exit, (part, lost), ports, bytes);
        }
        if let Arriving::Frame(frame) = arriving {
            frames.free(frame);
        }
        batch.len() >= self.shards.batch_max
    }

    /// Processes the batch unless it is empty.
    pub(in crate::deciding) fn settle_batch(&mut self) {
        if !self.shards.batch.is_empty() {
            self.advance_batch(self.advanced);
        }
    }

    /// Processes frames that arrived by `until`, at most one batch. Returns their number.
    pub(in crate::deciding) fn take_in_batch(&mut self, until: Nanos, tolerance: Nanos) -> usize {
        let memory_left = self.shards.memory_left();
        let batch_max = self.shards.batch_max;
        let mut taken = 0;
        while taken < batch_max
            && (self.shards.batch.stored_len() as u64) < memory_left
            && let Some(run) = self.shards.first.state.frames.next_run(until)
        {
            let (line, stamped) = (run.line, run.first);
            let mut arrival = stamped.max(self.advanced);
            if self.orders.next_at().is_some_and(|at| at <= arrival) {
                self.advance(arrival);
                // A late change may have applied after this arrival.
                arrival = arrival.max(self.advanced);
            }
            let Some((meta, frame)) = self.shards.first.state.frames.take(line, stamped) else {
                break;
            };
            taken += 1;
            self.note_moved(line.into(), stamped, arrival, tolerance);
            let meta = FrameMeta { arrival, ..meta };
            self.enter_batch(PortIndex(line), meta, Arriving::Frame(frame));
        }
        self.settle_batch();
        taken
    }

    /// Distributes the batch and processes all events before `until`, which is at least
    /// its last arrival.
    pub(in crate::deciding) fn advance_batch(&mut self, until: Nanos) {
        let placeholder = Classifier::new(RuleOrder::First, Target::Drop);
        let shared = Arc::new(RoundInput {
            batch: std::mem::take(&mut self.shards.batch),
            classifier: std::mem::replace(&mut self.classifier, placeholder),
        });
        if !shared.batch.is_empty() {
            let started = Instant::now();
            self.shards.classify(&shared);
            self.shards.times.classifying += started.elapsed();
            self.distribute(&shared.batch);
        }
        let started = Instant::now();
        let shards = &mut self.shards;
        shards.advance(&shared, until);
        shards.times.advancing += started.elapsed();
        shards.adapt_batches();
        for shard in shards.all_mut() {
            debug_assert_eq!(shard.next_entry, shard.entries.len());
            shard.entries.clear();
            shard.next_entry = 0;
        }
        shards.pass_on_before(until);
        // All jobs have dropped their references by now.
        if let Some(RoundInput { batch, classifier }) = Arc::into_inner(shared) {
            shards.batch = batch;
            shards.batch.clear();
            self.classifier = classifier;
        }
    }

    /// Assigns the frames of a batch to the shards of their first links.
    fn distribute(&mut self, batch: &FrameBatch) {
        let targets = self.shards.all_mut();
        let targets = targets.map(|shard| std::mem::take(&mut shard.targets));
        let targets: Vec<_> = targets.collect();
        let all = targets.iter().flatten().zip(batch.frames());
        for (number, (target, frame)) in all.enumerate() {
            let (path, drop) = match *target {
                Target::Pass if frame.lost => {
                    self.counts.port_lost.add(1);
                    continue;
                }
                Target::Pass => {
                    self.pass(frame, batch);
                    continue;
                }
                Target::Drop => {
                    self.counts.unmatched_dropped.add(1);
                    continue;
                }
                Target::Path(path) if frame.lost => (path, Some(DropReason::PortLost)),
                Target::Handover(path) => (path, Some(DropReason::Handover)),
                Target::Path(path) => (path, None),
            };
            let shard = self.shards.entry_of.get(path.0 as usize).copied();
            let shard = self.shards.at(shard.unwrap_or_default().into());
            shard.entries.push(BatchEntry {
                frame: number as u32,
                path,
                drop,
            });
        }
        for (shard, targets) in self.shards.all_mut().zip(targets) {
            shard.targets = targets;
        }
    }

    /// Passes a frame that crosses no link.
    fn pass(&mut self, frame: &BatchFrame, batch: &FrameBatch) {
        self.counts.passed.add(1);
        let FrameMeta { arrival, len } = frame.meta;
        let CoreState {
            frames, waiting, ..
        } = &mut self.shards.first.state;
        let ports = (frame.exit, frame.port);
        let item = frames.adopt(batch.bytes(frame), len, ports, batch.part(frame));
        waiting.push(PASSING, arrival, item);
    }

    /// Passes the frames collected by the shards to `leave`, in order.
    ///
    /// # Errors
    /// The errors of `leave`.
    pub(in crate::deciding) fn hand_out<E>(
        &mut self,
        mut leave: impl FnMut(Exit, OutputFrame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let shards = &mut self.shards;
        // The next frame of each shard, in descending order: few shards need no heap.
        let heads = shards.all().enumerate();
        let mut heads: Vec<OutputKey> = heads.filter_map(OutputKey::of_next).collect();
        heads.sort_unstable_by_key(|key| Reverse(*key));
        while let Some(OutputKey { release, index, .. }) = heads.last().copied() {
            let shard = shards.at(index as usize);
            let next = shard.handed_out;
            shard.handed_out += 1;
            let leaving = &shard.leaving[next];
            let frame = OutputFrame {
                port: PortIndex(0),
                release,
                bytes: shard.leaving_bytes(leaving),
                wire_len: leaving.wire_len,
            };
            leave(leaving.exit, frame)?;
            heads.pop();
            if let Some(next) = OutputKey::of_next((index as usize, &*shard)) {
                let place = heads.iter().rposition(|key| *key > next);
                heads.insert(place.map_or(0, |place| place + 1), next);
            }
        }
        Ok(())
    }

    /// Records the last events of the run.
    pub(in crate::deciding) fn finish_recording(&mut self) {
        self.shards.pass_on_before(Nanos::MAX);
        if let Some(recorder) = &mut self.shards.first.state.recorder {
            recorder.finish();
        }
    }
}
