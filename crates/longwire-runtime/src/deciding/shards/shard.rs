//! A shard: a subset of the links, with their events and frames.

use std::sync::Arc;

use longwire_engine::{Crossing, DropReason, FrameMeta, LinkId, Nanos, Network, PathId};
use longwire_io::port::offload::TrainPart;
use longwire_packet::bridge::PortIndex;

use super::batch::RoundInput;
use crate::deciding::frames::{Exit, Frame, Frames};
use crate::deciding::state::{CoreState, Target};

/// Number of frames whose links are prefetched together.
const AHEAD: usize = 32;

/// Number of frames ahead of which a departing frame's counters are prefetched.
const COUNTERS_AHEAD: usize = 8;

/// A batch frame that enters a path of this shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchEntry {
    /// Index of the frame in the batch.
    pub frame: u32,
    pub path: PathId,
    /// If set, the first link only counts the frame as dropped.
    pub drop: Option<DropReason>,
}

/// A frame that leaves the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub release: Nanos,
    /// The line of the frame's last link, which breaks ties between equal releases.
    pub line: LinkId,
    pub exit: Exit,
    pub wire_len: u32,
    start: usize,
    len: u32,
}

/// A frame in transit to another shard.
#[derive(Clone, Copy, Debug)]
struct CrossingFrame {
    start: usize,
    len: u32,
    wire_len: u32,
    ports: (Exit, PortIndex),
    part: Option<TrainPart>,
}

/// Frames between two shards.
#[derive(Debug, Default)]
pub(super) struct Messages {
    crossings: Vec<Crossing<CrossingFrame>>,
    bytes: Vec<u8>,
    /// The earliest arrival.
    pub first: Option<Nanos>,
}

/// The next job of a shard.
#[derive(Debug, Default)]
pub(super) enum Job {
    /// Do nothing.
    #[default]
    Rest,
    /// Classify a part of the batch.
    Classify {
        shared: Arc<RoundInput>,
        from: usize,
        to: usize,
    },
    /// Process all events before `end`, and the batch's arrivals until then.
    Advance {
        shared: Arc<RoundInput>,
        end: Nanos,
        /// Whether to offer arrivals at `end` too.
        inclusive: bool,
    },
}

/// Links with their frames and events.
#[derive(Default)]
pub(in crate::deciding) struct Shard {
    pub network: Network<Frame>,
    pub state: CoreState,
    pub(super) job: Job,
    /// Batch frames in order of arrival.
    pub(super) entries: Vec<BatchEntry>,
    /// Index of the first entry not yet offered.
    pub(super) next_entry: usize,
    /// Targets of the last classified part of the batch.
    pub(super) targets: Vec<Target>,
    /// Frames released before the end of the last window, in order. Their bytes are contiguous, so
    /// that they are read sequentially when handed out.
    pub(super) leaving: Vec<Leaving>,
    leaving_bytes: Vec<u8>,
    /// Number of frames handed out.
    pub(super) handed_out: usize,
    /// Whether due frames move to `leaving`.
    pub(super) collects: bool,
    /// Messages to each shard.
    pub(super) outboxes: Vec<Messages>,
    /// Messages from each shard.
    pub(super) inboxes: Vec<Messages>,
    /// The shard of each planned link. Other links are in the first shard.
    pub(super) shard_of: Arc<Vec<u16>>,
}

impl Shard {
    /// Returns a shard without links; there are `shards` in total.
    pub fn new(frames: Frames, shards: usize, shard_of: Arc<Vec<u16>>) -> Shard {
        let boxes = || (0..shards).map(|_| Messages::default()).collect();
        Shard {
            state: CoreState::new(frames),
            outboxes: boxes(),
            inboxes: boxes(),
            shard_of,
            ..Shard::default()
        }
    }

    /// Runs the shard's job.
    pub fn work(&mut self) {
        match std::mem::take(&mut self.job) {
            Job::Rest => {}
            Job::Classify { shared, from, to } => self.classify(&shared, from, to),
            Job::Advance {
                shared,
                end,
                inclusive,
            } => self.advance(&shared, end, inclusive),
        }
    }

    fn classify(&mut self, shared: &RoundInput, from: usize, to: usize) {
        self.targets.clear();
        let batch = &shared.batch;
        let targets = batch.frames()[from..to].iter().map(|frame| {
            let bytes = batch.bytes(frame);
            let mut key = shared.classifier.key(frame.port, bytes);
            frame
                .ports
                .into_iter()
                .for_each(|ports| key.set_ports(ports));
            let found = shared.classifier.classify_by(&key, bytes, frame.meta.len);
            found.target
        });
        self.targets.extend(targets);
    }

    fn advance(&mut self, shared: &RoundInput, end: Nanos, inclusive: bool) {
        self.forget_handed_out();
        self.accept();
        while let Some(arrival) = self.next_arrival(shared)
            && (arrival < end || inclusive && arrival == end)
        {
            if self.next_entry.is_multiple_of(AHEAD) {
                self.prefetch();
            }
            self.process_before(arrival);
            self.enter(shared);
        }
        self.process_before(end);
        self.close(end);
    }

    /// Processes all link events before `end`.
    #[inline]
    pub fn process_before(&mut self, end: Nanos) {
        self.network.advance(end, &mut self.state);
    }

    /// Offers a frame to a path, or only counts it as dropped at the path's first link.
    ///
    /// # Errors
    /// The frame, if the path does not exist.
    #[inline]
    pub fn offer(
        &mut self,
        path: PathId,
        meta: FrameMeta,
        frame: Frame,
        drop: Option<DropReason>,
    ) -> Result<(), Frame> {
        let Shard { network, state, .. } = self;
        match drop {
            None => network.offer(path, meta, frame, state),
            Some(reason) => network.drop_at_entry(path, meta, frame, reason, state),
        }
    }

    /// Ends a window, after all events before `end`.
    pub(super) fn close(&mut self, end: Nanos) {
        self.post();
        if let Some(recorder) = &mut self.state.recorder {
            recorder.at(end);
        }
        if self.collects {
            self.collect(end);
        }
    }

    /// Returns the arrival of the batch's next frame.
    pub(super) fn next_arrival(&self, shared: &RoundInput) -> Option<Nanos> {
        let entry = self.entries.get(self.next_entry)?;
        Some(shared.batch.frames()[entry.frame as usize].meta.arrival)
    }

    /// Offers the next batch frame to its path, after all events before its arrival.
    pub(super) fn enter(&mut self, shared: &RoundInput) {
        let entry = self.entries[self.next_entry];
        self.next_entry += 1;
        let frame = &shared.batch.frames()[entry.frame as usize];
        let (bytes, meta) = (shared.batch.bytes(frame), frame.meta);
        let frames = &mut self.state.frames;
        let ports = (frame.exit, frame.port);
        let item = frames.adopt(bytes, meta.len, ports, shared.batch.part(frame));
        if let Err(item) = self.offer(entry.path, meta, item, entry.drop) {
            debug_assert!(false, "a path without a link in its shard");
            self.state.frames.free(item);
        }
    }

    /// Prefetches the data of the next frames.
    fn prefetch(&mut self) {
        let mut paths = [PathId(0); AHEAD];
        let next = &self.entries[self.next_entry..];
        for (path, entry) in paths.iter_mut().zip(next) {
            *path = entry.path;
        }
        let paths = &paths[..next.len().min(AHEAD)];
        self.state.prefetch(&self.network, paths);
    }

    /// Writes frames that continue in other shards to the outboxes.
    pub(super) fn post(&mut self) {
        if !self.network.has_crossings() {
            return;
        }
        let frames = &mut self.state.frames;
        for crossing in self.network.crossings() {
            let to = shard_of(&self.shard_of, crossing.to);
            let Messages {
                crossings,
                bytes,
                first,
            } = &mut self.outboxes[to];
            *first = (*first).into_iter().chain([crossing.at()]).min();
            crossings.push(crossing.map(|frame| {
                let start = bytes.len();
                bytes.extend_from_slice(frames.bytes(&frame));
                let message = CrossingFrame {
                    start,
                    len: (bytes.len() - start) as u32,
                    wire_len: frame.wire_len,
                    ports: (frame.exit(), frame.entry),
                    part: frames.part(&frame),
                };
                frames.free(frame);
                message
            }));
        }
    }

    /// Receives frames from other shards.
    pub(super) fn accept(&mut self) {
        for inbox in &mut self.inboxes {
            let Messages {
                crossings,
                bytes,
                first,
            } = inbox;
            for crossing in crossings.drain(..) {
                let frames = &mut self.state.frames;
                self.network.accept(crossing.map(|message| {
                    let CrossingFrame {
                        start,
                        len,
                        wire_len,
                        ports,
                        part,
                    } = message;
                    frames.adopt(&bytes[start..start + len as usize], wire_len, ports, part)
                }));
            }
            bytes.clear();
            *first = None;
        }
    }

    /// Moves frames released before `end` to `leaving`, and counts them as departed.
    pub(super) fn collect(&mut self, end: Nanos) {
        if end == Nanos::ZERO {
            return;
        }
        let until = end.saturating_sub(Nanos::from_nanos(1));
        while let Some((line, release, frame)) = self.state.waiting.pop_due(until) {
            self.state.prefetch_counters(COUNTERS_AHEAD);
            self.state.left(line, frame.wire_len);
            let frames = &mut self.state.frames;
            let bytes = frames.bytes(&frame);
            self.leaving.push(Leaving {
                release,
                line,
                exit: frame.exit(),
                wire_len: frame.wire_len,
                start: self.leaving_bytes.len(),
                len: bytes.len() as u32,
            });
            self.leaving_bytes.extend_from_slice(bytes);
            frames.free(frame);
        }
    }

    /// Returns the bytes of a leaving frame.
    pub(super) fn leaving_bytes(&self, leaving: &Leaving) -> &[u8] {
        &self.leaving_bytes[leaving.start..leaving.start + leaving.len as usize]
    }

    /// Clears `leaving` once all its frames have been handed out.
    pub(super) fn forget_handed_out(&mut self) {
        if self.handed_out == self.leaving.len() {
            self.leaving.clear();
            self.leaving_bytes.clear();
            self.handed_out = 0;
        }
    }

    /// Returns the number of frames in the shard.
    pub fn frames(&self) -> usize {
        let coming: usize = self.inboxes.iter().map(|inbox| inbox.crossings.len()).sum();
        self.state.frames.len() + self.leaving.len() - self.handed_out + coming
    }
}

/// Returns a link's shard, which is the first one if the link is not planned.
pub(super) fn shard_of(planned: &[u16], link: LinkId) -> usize {
    let shard = planned.get(link.0 as usize).copied();
    shard.unwrap_or_default().into()
}

impl Messages {
    pub(super) fn is_empty(&self) -> bool {
        self.crossings.is_empty()
    }
}
