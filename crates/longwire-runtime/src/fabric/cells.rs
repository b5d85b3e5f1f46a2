//! Counters of each link: written by the deciding thread alone, readable by any
//! thread.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::{Delivery, DropReason, Nanos};
use serde::{Serialize, Serializer};

/// A counter that one thread writes.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    /// Adds without an atomic addition, which would cost more: no other thread
    /// writes.
    #[inline]
    fn add(&self, more: u64) {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(sum, Ordering::Relaxed);
    }

    fn raise(&self, value: u64) {
        if value > self.get() {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one link.
#[derive(Debug, Default)]
pub struct LinkCells {
    packets_in: Counter,
    bytes_in: Counter,
    packets_out: Counter,
    bytes_out: Counter,
    drops: [Counter; DropReason::ALL.len()],
    raised: Counter,
    marked: Counter,
    corrupted: Counter,
    duplicated: Counter,
    late: Counter,
    overload: Counter,
    late_max_ns: Counter,
}

/// Counts of one link, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkTotals {
    /// Frames that arrived.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames delivered, duplicates included.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Frames dropped, in the order of [`DropReason::ALL`]. They are serialized
    /// by the names of their reasons, as those of a single link.
    #[serde(serialize_with = "by_reason")]
    pub drops: [u64; DropReason::ALL.len()],
    /// Deliveries held back to stay in order.
    pub raised: u64,
    /// Frames marked with congestion experienced.
    pub ecn_marked: u64,
    /// Frames corrupted.
    pub corrupted: u64,
    /// Deliveries after the first of a frame.
    pub duplicated: u64,
    /// Frames handed to an output port later than the tolerance, among those
    /// for which this was the last link.
    pub late: u64,
    /// Frames handed over late while the network was overloaded; not counted in
    /// `late`.
    pub overload: u64,
    /// The maximum lateness of these and of `late`, in nanoseconds.
    pub late_max_ns: u64,
}

impl LinkCells {
    /// Reads a word of the counters that every frame changes.
    #[inline]
    pub(super) fn prefetch_hint(&self) -> u64 {
        self.packets_in.get() ^ self.bytes_out.get()
    }

    #[inline]
    pub(super) fn came(&self, len: u32) {
        self.packets_in.add(1);
        self.bytes_in.add(len.into());
    }

    #[inline]
    pub(super) fn delivered(&self, len: u32, delivery: &Delivery, again: bool) {
        self.packets_out.add(1);
        self.bytes_out.add(len.into());
        if delivery.raised {
            self.raised.add(1);
        }
        if again {
            self.duplicated.add(1);
        } else if delivery.edits.any() {
            self.marked.add(delivery.edits.mark.into());
            self.corrupted.add(delivery.edits.corrupt.into());
        }
    }

    pub(super) fn dropped(&self, reason: DropReason) {
        self.drops[reason.index()].add(1);
    }

    pub(super) fn late(&self, lateness: Nanos, overloaded: bool) {
        if overloaded {
            self.overload.add(1);
        } else {
            self.late.add(1);
        }
        self.late_max_ns.raise(lateness.as_nanos());
    }

    /// Returns the counts. Counters are read one by one: a frame may pass
    /// between two reads.
    pub fn totals(&self) -> LinkTotals {
        LinkTotals {
            packets_out: self.packets_out.get(),
            bytes_out: self.bytes_out.get(),
            drops: std::array::from_fn(|reason| self.drops[reason].get()),
            raised: self.raised.get(),
            ecn_marked: self.marked.get(),
            corrupted: self.corrupted.get(),
            duplicated: self.duplicated.get(),
            late: self.late.get(),
            overload: self.overload.get(),
            late_max_ns: self.late_max_ns.get(),
            // Last: a frame that has left has also arrived.
            packets_in: self.packets_in.get(),
            bytes_in: self.bytes_in.get(),
        }
    }
}

fn by_reason<S: Serializer>(
    drops: &[u64; DropReason::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let named = DropReason::ALL.iter().map(|reason| reason.name());
    serializer.collect_map(named.zip(drops))
}

impl LinkTotals {
    /// Adds the counts of another link.
    pub fn add(&mut self, other: &LinkTotals) {
        self.packets_in += other.packets_in;
        self.bytes_in += other.bytes_in;
        self.packets_out += other.packets_out;
        self.bytes_out += other.bytes_out;
        for (drops, more) in self.drops.iter_mut().zip(other.drops) {
            *drops += more;
        }
        self.raised += other.raised;
        self.ecn_marked += other.ecn_marked;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.late += other.late;
        self.overload += other.overload;
        self.late_max_ns = self.late_max_ns.max(other.late_max_ns);
    }

    /// Returns the number of frames dropped, for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Returns the number of frames in the queue: arrived, and neither
    /// delivered nor dropped.
    pub fn queued(&self) -> u64 {
        let gone = self.packets_out - self.duplicated.min(self.packets_out) + self.dropped();
        self.packets_in.saturating_sub(gone)
    }
}
