//! Link data binned by time.

use longwire_capture::log::{Fate, Name, Row};

use super::queue::{QueueStep, QueueSteps};
use super::service::{Served, Services};
use super::sketch::Sketch;

/// Maximum number of drop reasons counted separately; further reasons share the last counter.
const REASONS_MAX: usize = 16;

/// One link's data in one time bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Bytes that arrived.
    pub offered: u64,
    /// Bytes released.
    pub delivered: u64,
    /// Services completed.
    pub served: Served,
    /// Release minus arrival, for frames that arrived in this bin, in nanoseconds.
    pub delay: Sketch,
    /// Departure minus arrival, for frames that arrived in this bin, in nanoseconds.
    pub sojourn: Sketch,
    /// Queue length.
    pub queue: QueueBin,
    /// Drops of frames that arrived in this bin, by reason index.
    pub drops: Vec<u64>,
}

/// Queue length within a bin, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBin {
    /// Maximum length.
    pub most: u64,
    sum: u128,
    nanos: u64,
}

impl QueueBin {
    /// Returns the mean length, over the time in which it is known.
    pub fn mean(&self) -> Option<f64> {
        (self.nanos > 0).then(|| self.sum as f64 / self.nanos as f64)
    }
}

impl Bin {
    /// Merges the next bin into this one.
    pub fn merge(&mut self, next: Bin) {
        self.offered += next.offered;
        self.delivered += next.delivered;
        self.served.merge(next.served);
        self.delay.merge(next.delay);
        self.sojourn.merge(next.sojourn);
        self.queue.most = self.queue.most.max(next.queue.most);
        self.queue.sum += next.queue.sum;
        self.queue.nanos += next.queue.nanos;
        self.drops.resize(self.drops.len().max(next.drops.len()), 0);
        for (count, more) in self.drops.iter_mut().zip(next.drops) {
            *count += more;
        }
    }
}

/// Time scale of the bins.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Start of the first bin.
    pub origin: i64,
    /// Bin width in nanoseconds.
    pub width: u64,
}

impl Scale {
    /// Returns the index of the bin for a time; earlier times count in the first bin.
    pub fn index(&self, at: i64) -> usize {
        let since = at.saturating_sub(self.origin).max(0).cast_unsigned();
        (since / self.width) as usize
    }
}

/// A link's bins.
#[derive(Clone, Debug)]
pub struct LinkBins {
    /// Link name.
    pub link: Name,
    /// Bins so far.
    pub bins: Vec<Bin>,
    /// Names of the drop reasons.
    pub reasons: Vec<Name>,
    queue: QueueSteps,
    services: Services,
}

impl LinkBins {
    /// Creates an empty set of bins for a link.
    pub fn new(link: Name) -> LinkBins {
        LinkBins {
            link,
            bins: Vec::new(),
            reasons: Vec::new(),
            queue: QueueSteps::default(),
            services: Services::default(),
        }
    }

    /// Adds a row, whose times must lie on the scale.
    pub fn add(&mut self, row: &Row, scale: Scale) {
        let arrival = row.arrival_ns;
        let length = u64::from(row.length);
        if row.copy == 0 {
            self.bin(scale, arrival).offered += length;
        }
        if let Some(release) = row.release_ns.filter(|_| row.verdict == Fate::Deliver) {
            self.bin(scale, release).delivered += length;
            let bin = self.bin(scale, arrival);
            bin.delay.add(since(release, arrival));
            if let Some(departure) = row.departure_ns {
                bin.sojourn.add(since(departure, arrival));
            }
        }
        if row.verdict == Fate::Drop {
            let reason = self.reason(row.reason.as_ref());
            let drops = &mut self.bin(scale, arrival).drops;
            drops.resize(drops.len().max(reason + 1), 0);
            drops[reason] += 1;
        }
        if let Some(service) = self.services.of(row) {
            self.bin(scale, service.until).served.add(&service);
        }
        let bins = &mut self.bins;
        self.queue.add(row, |step| stretch(bins, scale, step));
    }

    /// Adds data that is only known at the end.
    pub fn finish(&mut self, scale: Scale) {
        let bins = &mut self.bins;
        self.queue.finish(|step| stretch(bins, scale, step));
    }

    /// Makes bins wider by a factor.
    pub fn widen(&mut self, factor: usize) {
        let mut wide: Vec<Bin> = Vec::with_capacity(self.bins.len().div_ceil(factor));
        for (index, bin) in std::mem::take(&mut self.bins).into_iter().enumerate() {
            match wide.last_mut() {
                Some(last) if index % factor > 0 => last.merge(bin),
                _ => wide.push(bin),
            }
        }
        self.bins = wide;
    }

    fn bin(&mut self, scale: Scale, at: i64) -> &mut Bin {
        bin(&mut self.bins, scale.index(at))
    }

    fn reason(&mut self, reason: Option<&Name>) -> usize {
        let reason = reason.cloned().unwrap_or_else(|| Name::from("unknown"));
        if let Some(known) = self.reasons.iter().position(|name| *name == reason) {
            return known;
        }
        if self.reasons.len() == REASONS_MAX {
            return REASONS_MAX - 1;
        }
        self.reasons.push(match self.reasons.len() + 1 {
            REASONS_MAX => Name::from("other reasons"),
            _ => reason,
        });
        self.reasons.len() - 1
    }
}

fn since(at: i64, arrival: i64) -> u64 {
    at.saturating_sub(arrival).max(0).cast_unsigned()
}

fn bin(bins: &mut Vec<Bin>, index: usize) -> &mut Bin {
    if bins.len() <= index {
        bins.resize_with(index + 1, Bin::default);
    }
    &mut bins[index]
}

/// Adds a queue length to all bins over which it extends.
fn stretch(bins: &mut Vec<Bin>, scale: Scale, step: QueueStep) {
    let (from, until) = (step.from.max(scale.origin), step.until.max(scale.origin));
    let last = scale.index(until.saturating_sub(1).max(from));
    for index in scale.index(from)..=last {
        let begin = scale
            .origin
            .saturating_add_unsigned(index as u64 * scale.width);
        let end = begin.saturating_add_unsigned(scale.width);
        let nanos = since(until.min(end), from.max(begin));
        let queue = &mut bin(bins, index).queue;
        queue.most = queue.most.max(step.length.packets);
        queue.sum += u128::from(step.length.packets) * u128::from(nanos);
        queue.nanos += nanos;
    }
}
