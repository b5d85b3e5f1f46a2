//! Counter cells that threads write, and the totals that reports read from them.
//!
//! Each cell has one writer, so counting is a load, an add and a store without an atomic
//! read-modify-write. Cells are read one by one; a frame may pass between two reads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::sync::OnceLock;

use longwire_engine::{Delivery, DropReason, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::counter::{CountCell, Counter};
use super::delays::DelayCells;
use super::table::{
    Artifact, EffectCells, Effects, HandoverCells, Handovers, Memory, MemoryCells,
    QueueLengthCells, QueueLengths, Traffic, TrafficCells,
};

/// One link's counters. The writer is the network's deciding thread or, for a pair, the owning
/// stage.
#[derive(Debug, Default)]
pub struct LinkCells {
    traffic: TrafficCells,
    /// Decided deliveries. The frames leave at their releases.
    scheduled: CountCell,
    /// Allocated on first use, because most links in large networks only forward frames.
    others: OnceLock<Box<OtherCells>>,
}

/// Counters that most frames do not touch.
#[derive(Debug, Default)]
struct OtherCells {
    drops: [CountCell; REASONS],
    effects: EffectCells,
    handovers: HandoverCells,
    /// A watched link's delays.
    delays: OnceLock<DelayCells>,
}

/// One link's counts at one moment, or sums over several links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkTotals {
    /// Frames and bytes.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Decided deliveries, including duplicates.
    #[serde(skip)]
    pub scheduled: u64,
    /// Frames dropped, by reason.
    #[schemars(with = "NamedCounts")]
    pub drops: Drops,
    /// Effects other than drops.
    #[serde(flatten)]
    pub effects: Effects,
    /// Late handovers.
    #[serde(flatten)]
    pub handovers: Handovers,
}

impl LinkCells {
    #[cold]
    fn others(&self) -> &OtherCells {
        self.others.get_or_init(Box::default)
    }

    /// Returns the number of frames that arrived.
    pub fn arrivals(&self) -> u64 {
        self.traffic.packets_in.get()
    }

    /// Counts an arriving frame with `len` bytes.
    #[inline]
    pub fn arrived(&self, len: u32) {
        self.traffic.packets_in.add(1);
        self.traffic.bytes_in.add(len.into());
    }

    /// Counts frames that left the link, and their total length.
    #[inline]
    pub fn left(&self, frames: u64, bytes: u64) {
        self.traffic.packets_out.add(frames);
        self.traffic.bytes_out.add(bytes);
    }

    /// Counts a delivery's effects. `copy` marks a duplicate.
    #[inline(always)]
    pub fn delivered(&self, delivery: &Delivery, copy: bool) {
        self.scheduled.add(1);
        if delivery.raised || copy || delivery.edits.any() {
            self.affected(delivery, copy);
        }
    }

    #[inline(never)]
    fn affected(&self, delivery: &Delivery, copy: bool) {
        if delivery.raised {
            self.others().effects.raised.add(1);
        }
        if copy {
            self.others().effects.duplicated.add(1);
        } else if delivery.edits.any() {
            let effects = &self.others().effects;
            effects.ecn_marked.add(delivery.edits.mark.into());
            effects.corrupted.add(delivery.edits.corrupt.into());
        }
    }

    /// Returns the delay histograms. Counting starts with the first call.
    pub fn watch_delays(&self) -> &DelayCells {
        self.others().delays.get_or_init(DelayCells::default)
    }

    /// Returns the delay histograms, if the link is watched.
    #[inline]
    pub fn delays(&self) -> Option<&DelayCells> {
        self.others.get()?.delays.get()
    }

    /// Counts an ICMP error from the link's router.
    pub fn icmp_sent(&self) {
        self.others().effects.icmp_sent.add(1);
    }

    /// Counts a drop.
    pub fn dropped(&self, reason: DropReason) {
        self.others().drops[reason.index()].add(1);
    }

    /// Counts the wire frames in one late handover.
    pub(crate) fn late(&self, frames: u64, lateness: Nanos, overloaded: bool) {
        let handovers = &self.others().handovers;
        if overloaded {
            handovers.overload.add(frames);
        } else {
            handovers.late.add(frames);
        }
        handovers.late_max_ns.raise(lateness.as_nanos());
    }

    /// Overwrites the counts with these totals.
    pub(crate) fn replace(&self, totals: &LinkTotals) {
        self.traffic.set(&totals.traffic);
        self.scheduled.set(totals.scheduled);
        let others = self.others();
        for reason in DropReason::ALL {
            others.drops[reason.index()].set(totals.drops[reason]);
        }
        others.effects.set(&totals.effects);
        others.handovers.set(&totals.handovers);
    }

    /// Returns the counts.
    pub fn totals(&self) -> LinkTotals {
        let mut totals = LinkTotals {
            traffic: self.traffic.read(),
            scheduled: self.scheduled.get(),
            ..LinkTotals::default()
        };
        if let Some(others) = self.others.get() {
            totals.drops = Drops(others.drops.each_ref().map(CountCell::get));
            totals.effects = others.effects.read();
            totals.handovers = others.handovers.read();
        }
        // Read last, so that departures never exceed arrivals.
        totals.traffic.packets_in = self.traffic.packets_in.get();
        totals.traffic.bytes_in = self.traffic.bytes_in.get();
        totals
    }
}

impl LinkTotals {
    /// Returns the counters that [`LinkTotals::counted`] lists.
    pub fn counters() -> impl Iterator<Item = &'static Counter> {
        let groups = [Traffic::COUNTERS, Effects::COUNTERS, Handovers::COUNTERS];
        groups.into_iter().flatten()
    }

    /// Returns all counters except drops, with their values.
    pub fn counted(&self) -> impl Iterator<Item = (&'static Counter, u64)> + use<> {
        let counted = self.traffic.counted().chain(self.effects.counted());
        counted.chain(self.handovers.counted())
    }

    /// Adds another link's counts.
    pub fn add(&mut self, other: &LinkTotals) {
        self.traffic.add(&other.traffic);
        self.scheduled += other.scheduled;
        self.drops.add(&other.drops);
        self.effects.add(&other.effects);
        self.handovers.add(&other.handovers);
    }

    /// Returns the number of frames and copies that neither left nor were dropped.
    pub fn held(&self) -> u64 {
        let gone = self.traffic.packets_out + self.drops.total();
        (self.traffic.packets_in + self.effects.duplicated).saturating_sub(gone)
    }

    /// Returns the number of queued frames, which have arrived and are neither delivered nor
    /// dropped.
    pub fn queued(&self) -> u64 {
        let delivered = self.scheduled.saturating_sub(self.effects.duplicated);
        let gone = delivered + self.drops.total();
        self.traffic.packets_in.saturating_sub(gone)
    }
}

/// Counters of one stage at a port, on a separate cache line per stage.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StageCells {
    pub traffic: TrafficCells,
    /// Wire frames that the stage put on the delay line or took off it.
    pub crossed: CountCell,
    pub artifacts: ArtifactCells,
    pub queue: QueueLengthCells,
    pub memory: MemoryCells,
}

/// One burst's counts, accumulated locally and published once. Updating shared cells per frame
/// would add 5 to 9 % to the cost of a short frame.
#[derive(Debug, Default)]
pub(crate) struct BurstCounts {
    packets: u64,
    crossed: u64,
    bytes: u64,
}

impl BurstCounts {
    /// Counts wire frames that arrived or were pushed to the port.
    #[inline]
    pub fn passed(&mut self, wire_frames: u64, bytes: u64) {
        self.packets += wire_frames;
        self.bytes += bytes;
    }

    /// Counts wire frames put on the delay line or taken off it.
    #[inline]
    pub fn crossed(&mut self, wire_frames: u64) {
        self.crossed += wire_frames;
    }

    /// Adds the burst to the stage's arrivals.
    #[inline]
    pub fn publish_in(&mut self, stage: &StageCells) {
        let burst = std::mem::take(self);
        stage.traffic.packets_in.add(burst.packets);
        stage.traffic.bytes_in.add(burst.bytes);
        stage.crossed.add(burst.crossed);
    }

    /// Adds the burst to the stage's departures.
    #[inline]
    pub fn publish_out(&mut self, stage: &StageCells) {
        let burst = std::mem::take(self);
        stage.traffic.packets_out.add(burst.packets);
        stage.traffic.bytes_out.add(burst.bytes);
        stage.crossed.add(burst.crossed);
    }
}

/// Artifact cells, by kind.
#[derive(Debug, Default)]
pub(crate) struct ArtifactCells([CountCell; Artifact::ALL.len()]);

impl Index<Artifact> for ArtifactCells {
    type Output = CountCell;

    #[inline]
    fn index(&self, kind: Artifact) -> &CountCell {
        &self.0[kind as usize]
    }
}

/// Sums of the counters of the stages between two ports, at one moment.
#[derive(Debug, Default)]
pub(crate) struct StageTotals {
    pub traffic: Traffic,
    pub queue: QueueLengths,
    pub memory: Memory,
    /// Frames that the ingress stage put on its delay line.
    pub put_on_line: u64,
    artifacts: [u64; Artifact::ALL.len()],
}

impl StageTotals {
    /// Returns the count of artifacts of this kind.
    pub fn artifact(&self, kind: Artifact) -> u64 {
        self.artifacts[kind as usize]
    }

    /// Adds a stage's counts.
    pub fn add(&mut self, stage: &StageCells) {
        self.traffic.add(&stage.traffic.read());
        self.queue.add(&stage.queue.read());
        self.memory.add(&stage.memory.read());
        for (sum, cell) in self.artifacts.iter_mut().zip(&stage.artifacts.0) {
            *sum += cell.get();
        }
    }

    /// Returns the counts of these kinds, by name.
    pub fn artifacts(&self, kinds: impl Iterator<Item = Artifact>) -> NamedCounts {
        let counts = kinds.map(|kind| (kind.name(), self.artifacts[kind as usize]));
        counts.collect()
    }
}

/// Number of drop reasons.
const REASONS: usize = DropReason::ALL.len();

/// Counts by name, in order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NamedCounts(BTreeMap<Cow<'static, str>, u64>);

impl NamedCounts {
    /// Returns the total.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the count with this name, or 0.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the nonzero counts.
    pub fn nonzero(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.0.iter().map(|(name, count)| (name.as_ref(), *count));
        counts.filter(|(_, count)| *count > 0)
    }
}

impl Deref for NamedCounts {
    type Target = BTreeMap<Cow<'static, str>, u64>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for NamedCounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl FromIterator<(&'static str, u64)> for NamedCounts {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(counts: I) -> NamedCounts {
        let counts = counts.into_iter();
        NamedCounts(counts.map(|(name, count)| (name.into(), count)).collect())
    }
}

impl<const N: usize> From<[(&'static str, u64); N]> for NamedCounts {
    fn from(counts: [(&'static str, u64); N]) -> NamedCounts {
        counts.into_iter().collect()
    }
}

/// Drops by reason. Serialized with all reasons' names, in the order of [`DropReason::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "NamedCounts")]
pub struct Drops([u64; REASONS]);

impl Drops {
    /// Returns the total.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns each reason's name with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let drops = *self;
        let reasons = DropReason::ALL.into_iter();
        reasons.map(move |reason| (reason.name(), drops[reason]))
    }

    /// Returns the nonzero counts by name.
    pub fn nonzero(&self) -> NamedCounts {
        self.iter().filter(|(_, count)| *count > 0).collect()
    }

    fn add(&mut self, other: &Drops) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

impl Index<DropReason> for Drops {
    type Output = u64;

    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason.index()]
    }
}

impl IndexMut<DropReason> for Drops {
    fn index_mut(&mut self, reason: DropReason) -> &mut u64 {
        &mut self.0[reason.index()]
    }
}

impl From<NamedCounts> for Drops {
    fn from(counts: NamedCounts) -> Drops {
        Drops(DropReason::ALL.map(|reason| counts.of(reason.name())))
    }
}

impl Serialize for Drops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
