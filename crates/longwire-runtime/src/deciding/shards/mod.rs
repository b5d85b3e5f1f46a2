//! Shards: a network's links on several threads, with the same verdicts, releases and logs
//! as on a single thread.
//!
//! This is conservative parallel simulation with bounded windows (Nicol, *The cost of conservative
//! synchronization in parallel discrete event simulations*, 1993). The calling thread reads a batch
//! of frames, and the switch determines their exits. Each thread then classifies a part of the
//! batch, and each frame goes to the shard of its first link. A window is as long as the shortest
//! delay of a link after which a path continues in another shard, so events of different shards
//! within a window are independent. Shards exchange frames at the end of a window.
//!
//! The order of simultaneous events does not depend on threads: links are independent, and
//! frames that reach a link at the same time are ordered by their previous links.

mod batch;
mod batches;
mod pool;
mod shard;
mod windows;

use std::collections::BTreeMap;
use std::iter::once;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use longwire_engine::{
    Bytes, Link, LinkChange, LinkId, Nanos, PathId, QueueLengths, RemovedLink, ReplacedParts,
};

use self::batch::FrameBatch;
use self::pool::Pool;
pub use self::pool::shard_round;
pub(super) use self::shard::Shard;
use self::shard::shard_of;
use super::flows::{FlowCount, FlowSketch};
use super::frames::{Frame, Frames};
use super::recorder::EventRecorder;
use super::watched::WatchedLinks;
use crate::counters::LinkCells;
use crate::host;

/// Maximum number of frames in a batch.
const BATCH_MAX: usize = 4_096;

/// Maximum number of frames in the first batch.
const BATCH_FIRST: usize = 64;

/// Prefetch distance, in frames.
const PREFETCH_AHEAD: usize = 8;

/// The distribution of a network over shards.
#[derive(Clone, Debug)]
pub struct Sharding {
    shard_of: Vec<u16>,
    shards: usize,
    threads: NonZero<usize>,
    /// Whether arrivals are processed in batches instead of one by one.
    pub(super) in_batches: bool,
    /// Memory limit for the network's frames, if arrivals are processed in batches.
    pub(super) memory: Bytes,
    /// Whether threads request the data path's priority.
    pub(super) realtime: bool,
}

impl Sharding {
    /// Assigns links to shards by link number. Uses at most one thread per shard, including
    /// the calling one.
    ///
    /// # Panics
    /// If there are no shards, or a link is in a shard that does not exist.
    pub fn new(shard_of: Vec<u16>, shards: usize, threads: NonZero<usize>) -> Sharding {
        let known = |shard: &u16| usize::from(*shard) < shards;
        assert!(shards > 0 && shard_of.iter().all(known), "an unknown shard");
        Sharding {
            shard_of,
            shards,
            threads,
            in_batches: true,
            memory: Bytes(u64::MAX),
            realtime: false,
        }
    }

    /// Returns a single shard, which processes arrivals one by one.
    pub fn one() -> Sharding {
        Sharding {
            in_batches: false,
            ..Sharding::new(Vec::new(), 1, NonZero::<usize>::MIN)
        }
    }

    /// Returns a distribution over one thread per shard, at most one per core.
    pub fn on_cores(shard_of: &[u16], shards: usize) -> Sharding {
        if shards <= 1 {
            return Sharding::one();
        }
        let threads = NonZero::new(host::cores()).unwrap_or(NonZero::<usize>::MIN);
        Sharding::new(shard_of.to_vec(), shards, threads)
    }

    /// Returns the suffix of the note on thread placement. Empty for a single shard.
    pub(super) fn placement(&self) -> String {
        if self.is_one() {
            return String::new();
        }
        let (threads, shards) = self.size();
        format!("; {shards} shards on {threads} threads")
    }

    /// Returns whether there is a single shard.
    pub fn is_one(&self) -> bool {
        self.shards == 1
    }

    /// Returns the shard of a link.
    pub fn shard_of(&self, link: LinkId) -> Option<u16> {
        self.shard_of.get(link.0 as usize).copied()
    }

    /// Returns the number of parallel threads and the number of shards.
    pub fn size(&self) -> (usize, usize) {
        (self.threads.get().min(self.shards), self.shards)
    }
}

/// Time spent in the parallel phases of a sharded network.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardTimes {
    /// Time to classify frames.
    pub classifying: Duration,
    /// Time to process events.
    pub advancing: Duration,
    /// Number of rounds with more than one thread.
    pub rounds: u64,
}

/// The links of a network, in one or more shards, and frames not yet distributed to them.
pub(super) struct Shards {
    /// The shard that only the calling thread processes. Its frames include those on lines and
    /// those without a link, and its counters cover the links of all shards.
    pub first: Shard,
    #[expect(clippy::vec_box, reason = "threads hand over pointers, not kilobytes")]
    others: Vec<Box<Shard>>,
    pool: Pool<Shard>,
    shard_of: Arc<Vec<u16>>,
    /// The shard of each path's first link, unless that is the first shard.
    entry_of: Vec<u16>,
    /// Paths that cross several shards.
    crossing: BTreeMap<PathId, Box<[LinkId]>>,
    /// Links after which paths continue in another shard, with the number of such hops.
    cuts: BTreeMap<LinkId, u32>,
    /// The minimum delay of these links, computed on demand.
    lookahead: Option<Option<Nanos>>,
    /// Whether arrivals are processed in batches instead of one by one.
    pub in_batches: bool,
    batch: FrameBatch,
    /// Maximum number of frames in the next batch.
    batch_max: usize,
    memory_max: Bytes,
    /// Maximum stored bytes by port of arrival, if arrivals are processed in batches.
    stored_max: Vec<u64>,
    pub(super) times: ShardTimes,
}

impl Shards {
    /// Starts threads and shards without links.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(sharding: Sharding, frames: Frames) -> std::io::Result<Shards> {
        let Sharding {
            shard_of,
            shards,
            threads,
            in_batches,
            memory,
            realtime,
        } = sharding;
        let shard_of = Arc::new(shard_of);
        let ports = if in_batches { frames.line_count() } else { 0 };
        let shard = |mut frames: Frames| {
            frames.stored = vec![0; ports];
            Shard::new(frames, shards, Arc::clone(&shard_of))
        };
        let other = |_| Box::new(shard(Frames::new(Vec::new())));
        Ok(Shards {
            first: shard(frames),
            others: (1..shards).map(other).collect(),
            pool: Pool::start(shards - 1, threads, realtime, Shard::work)?,
            entry_of: Vec::new(),
            crossing: BTreeMap::new(),
            cuts: BTreeMap::new(),
            lookahead: None,
            in_batches,
            batch: FrameBatch::default(),
            batch_max: BATCH_FIRST,
            memory_max: memory,
            stored_max: vec![0; ports],
            times: ShardTimes::default(),
            shard_of,
        })
    }

    /// Makes the shards collect departing frames for [`Core::hand_out`].
    pub fn collect(&mut self) {
        self.all_mut().for_each(|shard| shard.collects = true);
    }

    /// Makes the shards record their links' verdicts.
    pub fn record(&mut self, recorder: Option<EventRecorder>) {
        if recorder.is_some() {
            for shard in &mut self.others {
                shard.state.recorder = Some(Box::new(EventRecorder::of_shard()));
            }
        }
        let recorder = match recorder {
            Some(recorder) if self.in_batches => Some(recorder.shared()),
            recorder => recorder,
        };
        self.first.state.recorder = recorder.map(Box::new);
    }

    /// Passes on the recorded events of all shards before `until`, in order. The events must be
    /// complete.
    fn pass_on_before(&mut self, until: Nanos) {
        let Some(recorder) = &mut self.first.state.recorder else {
            return;
        };
        let others = self.others.iter_mut();
        for other in others.filter_map(|shard| shard.state.recorder.as_deref_mut()) {
            recorder.gather(other);
        }
        recorder.pass_on_before(until);
    }

    /// Watches `links` instead of the previous ones: each shard keeps the arrivals of undecided
    /// frames on its own watched links.
    pub fn watch(&mut self, links: &[LinkId]) {
        let planned = Arc::clone(&self.shard_of);
        for (index, shard) in self.all_mut().enumerate() {
            let own = links.iter().copied();
            let own = own.filter(|link| shard_of(&planned, *link) == index);
            shard.state.watched = WatchedLinks::new(&own.collect::<Vec<_>>());
        }
    }

    /// Counts the flows of this link. `None` stops counting.
    pub fn watch_flows(&mut self, link: Option<LinkId>) {
        self.all_mut().for_each(|shard| shard.state.flows = None);
        if let Some(link) = link {
            self.of(link).state.flows = Some(Box::new(FlowSketch::of(link)));
        }
    }

    /// Returns the frame count of the link whose flows are counted, and its largest flows
    /// in descending order.
    pub fn flows(&self) -> (u64, Vec<FlowCount>) {
        let mut flows = self.all().filter_map(|shard| shard.state.flows.as_ref());
        flows.next().map(|flows| flows.read()).unwrap_or_default()
    }

    /// Returns the shard of a link.
    fn of(&mut self, link: LinkId) -> &mut Shard {
        self.at(self.index_of(link))
    }

    fn index_of(&self, link: LinkId) -> usize {
        shard_of(&self.shard_of, link)
    }

    fn at(&mut self, index: usize) -> &mut Shard {
        match index.checked_sub(1) {
            None => &mut self.first,
            Some(index) => &mut self.others[index],
        }
    }

    fn all(&self) -> impl Iterator<Item = &Shard> {
        let others = self.others.iter().map(|shard| &**shard);
        once(&self.first).chain(others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        let others = self.others.iter_mut().map(|shard| &mut **shard);
        once(&mut self.first).chain(others)
    }

    /// Adds a link. Links that are not planned go to the first shard.
    pub fn add_link(&mut self, id: LinkId, link: Link, cells: Arc<LinkCells>) {
        if self.index_of(id) > 0 {
            self.of(id).state.set_cells(id, Arc::clone(&cells));
        }
        self.first.state.set_cells(id, cells);
        self.of(id).network.add_link(id, link);
    }

    /// Adds a path. Returns `false` if a link does not exist.
    pub fn add_path(&mut self, id: PathId, links: &[LinkId]) -> bool {
        let known = |link: &LinkId| {
            let shard = self.all().nth(self.index_of(*link));
            shard.is_some_and(|shard| shard.network.has_link(*link))
        };
        let Some(first) = links.first().filter(|_| links.iter().all(known)) else {
            return false;
        };
        let first = self.index_of(*first);
        if links.iter().all(|link| self.index_of(*link) == first) {
            self.at(first).network.add_path(id, links);
        } else {
            self.count_cuts(links, 1);
            self.crossing.insert(id, links.into());
            let mut owners: Vec<usize> = links.iter().map(|link| self.index_of(*link)).collect();
            owners.sort_unstable();
            owners.dedup();
            for owner in owners {
                self.at(owner).network.add_shared_path(id, links);
            }
        }
        let index = id.0 as usize;
        if first > 0 && index >= self.entry_of.len() {
            self.entry_of.resize(index + 1, 0);
        }
        if let Some(entry) = self.entry_of.get_mut(index) {
            *entry = first as u16;
        }
        true
    }

    /// Removes a path. Returns `false` while frames are on it.
    pub fn remove_path(&mut self, id: PathId) -> bool {
        if self.all().any(|shard| shard.network.frames_on(id) > 0) {
            return false;
        }
        for shard in self.all_mut() {
            shard.network.remove_path(id);
        }
        if let Some(links) = self.crossing.remove(&id) {
            self.count_cuts(&links, -1);
        }
        true
    }

    fn count_cuts(&mut self, links: &[LinkId], change: i32) {
        for hop in links.windows(2) {
            if self.index_of(hop[0]) != self.index_of(hop[1]) {
                let hops = self.cuts.entry(hop[0]).or_default();
                *hops = hops.saturating_add_signed(change);
                if *hops == 0 {
                    self.cuts.remove(&hop[0]);
                }
                self.lookahead = None;
            }
        }
    }

    /// Returns a link.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.all().nth(self.index_of(id))?.network.link(id)
    }

    /// See [`Network::occupancy`].
    ///
    /// [`Network::occupancy`]: longwire_engine::Network::occupancy
    pub fn occupancy(&self, id: LinkId, now: Nanos) -> Option<QueueLengths> {
        let shard = self.all().nth(self.index_of(id))?;
        shard.network.occupancy(id, now)
    }

    /// Removes a link that no path crosses and returns it with its counters. The number
    /// stays reserved.
    pub fn remove_link(&mut self, id: LinkId) -> Option<(RemovedLink<Frame>, Arc<LinkCells>)> {
        let shard = self.of(id);
        let removed = shard.network.remove_link(id)?;
        let own = shard.state.take_cells(id);
        let cells = self.first.state.take_cells(id).or(own)?;
        Some((removed, cells))
    }

    /// Changes a link at `at`, after all earlier events.
    pub fn change(&mut self, id: LinkId, at: Nanos, change: LinkChange) -> Option<ReplacedParts> {
        // The delay may change.
        self.lookahead = None;
        let Shard { network, state, .. } = self.of(id);
        network.change(id, at, change, state)
    }

    /// See [`Network::stays_until`].
    pub fn stay_until(&mut self, until: Nanos) {
        for shard in self.all_mut() {
            shard.network.stays_until(until);
        }
    }

    /// Returns the earliest time at which links may change.
    pub fn changeable_from(&self) -> Nanos {
        let times = self.all().map(|shard| shard.network.changeable_from());
        times.max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the number of frames in the shards and in the batch.
    pub fn frames(&self) -> usize {
        self.batch.len() + self.all().map(Shard::frames).sum::<usize>()
    }

    /// Returns the time of the next event or undistributed frame.
    pub fn next_at(&self) -> Option<Nanos> {
        let events = self.all().filter_map(|shard| shard.network.next_at());
        let batch = self.batch.frames().first();
        let batch = batch.map(|frame| frame.meta.arrival.saturating_add(Nanos::from_nanos(1)));
        events.chain(batch).min()
    }

    /// Returns the next release.
    pub fn next_release(&self) -> Option<Nanos> {
        let waiting = self.all().filter_map(|shard| shard.state.waiting.next_at());
        waiting.min()
    }

    /// Removes the next frame due by `now`. Returns its line, its release, and the first
    /// shard's handle to it.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, Frame)> {
        if !self.others.is_empty() {
            return self.pop_due_of_all(now);
        }
        self.first.state.waiting.pop_due(now)
    }

    /// Prefetches a frame that leaves soon.
    #[inline]
    pub fn prefetch_ahead(&self) {
        let state = &self.first.state;
        if let Some(later) = state.waiting.ahead(PREFETCH_AHEAD) {
            state.frames.prefetch(later);
        }
    }

    fn pop_due_of_all(&mut self, now: Nanos) -> Option<(LinkId, Nanos, Frame)> {
        let heads = self.all_mut().enumerate();
        let heads = heads.filter_map(|(index, shard)| {
            let place = shard.state.waiting.next_place()?;
            Some((place, index))
        });
        let (_, index) = heads.min()?;
        let (line, release, frame) = self.at(index).state.waiting.pop_due(now)?;
        let Some(index) = index.checked_sub(1) else {
            return Some((line, release, frame));
        };
        let frames = &mut self.others[index].state.frames;
        let (bytes, wire_len) = (frames.bytes(&frame), frame.wire_len);
        let ports = (frame.exit(), frame.entry);
        let own = &mut self.first.state.frames;
        let own = own.adopt(bytes, wire_len, ports, frames.part(&frame));
        frames.free(frame);
        Some((line, release, own))
    }
}
