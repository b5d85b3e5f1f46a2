//! Collection of a run's data, row by row, in bounded memory.
//!
//! [`RunGatherer`] collects the rows of a log, from a file or while a run writes it. Bins widen
//! with the duration of the run, so their number is bounded.

mod bins;
mod queue;
mod select;
mod service;
mod sketch;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longwire_capture::log::{Fate, LogError, LogReader, Name, Row, RowSink};

pub use bins::{Bin, LinkBins};
pub use queue::{QueueStep, QueueSteps};
pub use select::{LinkPattern, LogDirection, Selection};
pub use service::{Served, Services};
pub use sketch::{FineSketch, Sketch};

use bins::Scale;

use crate::PlotError;
use crate::input::for_rows;
use crate::series::rank;

/// Maximum number of bins per link, of which at least half are in use.
const BINS_MAX: usize = 2_048;

/// Initial bin width in nanoseconds.
const WIDTH_FIRST: u64 = 1_000;

/// Maximum number of links with bins while rows are added.
const LINKS_MAX: usize = 16;

/// Maximum number of links counted by name.
const COUNTED_MAX: usize = 20_000;

/// A link's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames that arrived.
    pub frames_in: u64,
    /// Bytes that arrived.
    pub bytes_in: u64,
    /// Frames delivered, including copies.
    pub frames_out: u64,
    /// Bytes delivered, including copies.
    pub bytes_out: u64,
    /// Frames dropped.
    pub dropped: u64,
}

impl LinkCounts {
    fn add(&mut self, row: &Row) {
        let bytes = u64::from(row.length);
        if row.copy == 0 {
            self.frames_in += 1;
            self.bytes_in += bytes;
        }
        match row.verdict {
            Fate::Deliver => {
                self.frames_out += 1;
                self.bytes_out += bytes;
            }
            Fate::Drop => self.dropped += 1,
            Fate::Held => {}
        }
    }
}

/// Collects the rows of a run.
#[derive(Clone, Debug)]
pub struct RunGatherer {
    selection: Selection,
    origin: Option<i64>,
    /// Bin width in nanoseconds.
    pub(crate) width: u64,
    /// Selected links.
    pub(crate) links: Vec<LinkBins>,
    current: usize,
    /// Counters of links, by name.
    pub(crate) counts: BTreeMap<Name, LinkCounts>,
    /// Number of rows in the log.
    pub(crate) rows: u64,
    last: i64,
    /// Start of the run, if recorded in the log.
    epoch: Option<i64>,
}

impl RunGatherer {
    /// Creates a collector with bins for the selected links. All links are counted.
    pub fn new(selection: Selection) -> RunGatherer {
        RunGatherer {
            selection,
            origin: None,
            width: WIDTH_FIRST,
            links: Vec::new(),
            current: 0,
            counts: BTreeMap::new(),
            rows: 0,
            last: i64::MIN,
            epoch: None,
        }
    }

    /// Sets the start of the first bin. Call it before the first row. The default is the first
    /// arrival.
    pub fn set_origin(&mut self, origin: i64) {
        self.origin.get_or_insert(origin);
    }

    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        let last = row.arrival_ns.max(row.release_ns.unwrap_or(i64::MIN));
        self.last = self.last.max(last);
        self.origin.get_or_insert(row.arrival_ns);
        if self.counts.len() < COUNTED_MAX || self.counts.contains_key(&row.link) {
            self.counts.entry(row.link.clone()).or_default().add(row);
        }
        if self.find(&row.link) {
            self.reach(last.max(row.departure_ns.unwrap_or(i64::MIN)));
            let scale = self.scale();
            self.links[self.current].add(row, scale);
        }
    }

    /// Whether no link has bins.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether the log belongs to a run that started at this time. True for older logs, which lack
    /// the start.
    pub fn is_of(&self, epoch_ns: u64) -> bool {
        self.epoch
            .is_none_or(|epoch| i128::from(epoch) == i128::from(epoch_ns))
    }

    /// Makes a link the current one. Adds it if it is selected and fewer than [`LINKS_MAX`] links
    /// have bins; otherwise, returns `false` for an unknown link.
    fn find(&mut self, link: &Name) -> bool {
        // Most rows have the same link as the previous row.
        let current = self.links.get(self.current);
        if current.is_some_and(|of| of.link == *link) {
            return true;
        }
        if let Some(known) = self.links.iter().position(|of| of.link == *link) {
            self.current = known;
            return true;
        }
        if self.links.len() == LINKS_MAX || !self.selection.has(link) {
            return false;
        }
        self.current = self.links.len();
        self.links.push(LinkBins::new(link.clone()));
        true
    }

    /// Widens the bins until they include a time.
    fn reach(&mut self, last: i64) {
        // All links share the memory, so each has fewer bins if there are many.
        let most = match self.links.len() {
            0..=4 => BINS_MAX,
            _ => BINS_MAX / 2,
        };
        let mut factor = 1u64;
        let index = self.scale().index(last) as u64;
        while index / factor >= most as u64 || self.longest() as u64 / factor > most as u64 {
            factor *= 2;
        }
        if factor > 1 {
            self.widen(factor);
        }
    }

    fn widen(&mut self, factor: u64) {
        self.width = self.width.saturating_mul(factor);
        for link in &mut self.links {
            link.widen(factor as usize);
        }
    }

    fn longest(&self) -> usize {
        let lengths = self.links.iter().map(|link| link.bins.len());
        lengths.max().unwrap_or(0)
    }

    fn scale(&self) -> Scale {
        Scale {
            origin: self.origin.unwrap_or_default(),
            width: self.width,
        }
    }

    /// Returns the time from the origin to the last arrival or release, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.last.saturating_sub(self.scale().origin).max(0) as f64 / 1e9
    }

    /// Completes the data and reduces it to the `links` busiest links and about `bins` bins in
    /// total. All links then have equally many bins.
    pub fn finish(mut self, links: usize, bins: usize) -> RunGatherer {
        let scale = self.scale();
        for link in &mut self.links {
            link.finish(scale);
        }
        let counts = &self.counts;
        let carried = |link: &LinkBins| counts.get(&link.link).map_or(0, |of| of.bytes_in);
        self.links.sort_by_key(|link| Reverse(carried(link)));
        self.links.truncate(links);
        self.links.sort_by(|a, b| rank(&a.link).cmp(&rank(&b.link)));
        while self.links.len() * self.longest() > bins.max(2 * self.links.len()) {
            self.widen(2);
        }
        let bins = self.longest();
        for link in &mut self.links {
            link.bins.resize_with(bins, Bin::default);
        }
        self
    }
}

/// Collects a log from its file, with bins for the busiest of the selected links.
///
/// # Errors
/// If the file cannot be read.
pub fn gather_file(
    path: &Path,
    selection: &Selection,
    origin: Option<i64>,
    mut at: impl FnMut(u64, u64),
) -> Result<RunGatherer, PlotError> {
    let gatherer = RunGatherer::new(selection.clone());
    let first = read(path, gatherer, origin, &mut at)?;
    let chosen = first.counts.iter().filter(|(link, _)| selection.has(link));
    if chosen.clone().count() <= LINKS_MAX {
        return Ok(first);
    }
    // If there are more links than can have bins, read the log again for the busiest ones.
    let mut most: Vec<_> = chosen.map(|(link, of)| (of.bytes_in, link)).collect();
    most.sort_by(|a, b| b.cmp(a));
    let most = most.into_iter().take(LINKS_MAX);
    let mut again = RunGatherer::new(Selection::default());
    again.links = most.map(|(_, link)| LinkBins::new(link.clone())).collect();
    let again = read(path, again, origin, &mut at)?;
    Ok(RunGatherer {
        counts: first.counts,
        ..again
    })
}

fn read(
    path: &Path,
    mut gatherer: RunGatherer,
    origin: Option<i64>,
    at: &mut dyn FnMut(u64, u64),
) -> Result<RunGatherer, PlotError> {
    for_rows(&mut LogReader::open(path)?, at, |row, epoch| {
        gatherer.epoch = epoch;
        if let Some(origin) = epoch.or(origin) {
            gatherer.set_origin(origin);
        }
        gatherer.add(row);
        Ok(())
    })?;
    Ok(gatherer)
}

/// A collector that a run fills while writing its log.
#[derive(Clone, Debug)]
pub struct SharedGatherer(Arc<Mutex<RunGatherer>>);

impl SharedGatherer {
    /// Returns a copy of the data collected so far.
    pub fn get(&self) -> RunGatherer {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RunGatherer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SharedGatherer {
    /// Creates a collector for all links.
    fn default() -> SharedGatherer {
        let gatherer = RunGatherer::new(Selection::default());
        SharedGatherer(Arc::new(Mutex::new(gatherer)))
    }
}

impl RowSink for SharedGatherer {
    fn set_epoch(&mut self, epoch_ns: i64) {
        self.lock().set_origin(epoch_ns);
    }

    fn write(&mut self, row: &Row) -> Result<(), LogError> {
        self.lock().add(row);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), LogError> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use longwire_capture::log::{Fate, Name, Row};

    /// Returns the row of a 1,250-byte frame that was delivered without delay.
    pub(crate) fn row(link: &str, frame: u64, arrival: i64, departure: Option<i64>) -> Row {
        Row {
            frame,
            link: Name::from(link),
            arrival_ns: arrival,
            length: 1_250,
            verdict: Fate::Deliver,
            departure_ns: departure,
            release_ns: departure,
            reason: None,
            ecn_marked: false,
            corrupted: false,
            copy: 0,
            queue_packets: 1,
            queue_bytes: 1_250,
        }
    }
}

#[cfg(test)]
mod tests;
