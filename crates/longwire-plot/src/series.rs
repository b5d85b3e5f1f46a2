//! Data of links, collected from logs in one pass.

use std::collections::BTreeMap;
use std::path::Path;

use longwire_capture::log::{Fate, LogReader, Name, Row};

use super::PlotError;
use super::gather::{FineSketch, QueueStep, QueueSteps, Selection, Served, Services};
use super::input::{Span, for_rows};
use super::runs::LossRuns;
use super::trace::{Columns, Marks, Trace};
use crate::scene::SERIES_MAX;

/// Maximum number of drop reasons counted separately, because a figure has space for few bars.
/// Further reasons share one counter.
const REASONS_MAX: usize = 32;

/// Caption of a time axis that starts at the first frame of each log.
pub const SINCE_FIRST_FRAME: &str = "Time since the first frame";
/// Caption of a time axis that starts with the run, like the times in reports.
pub const SINCE_START: &str = "Time since the start of the run";

/// Time range to draw, and its resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Columns of the time axis, relative to its zero.
    pub columns: Columns,
    /// Caption of the time axis, which names its zero.
    pub caption: &'static str,
    /// Width of a throughput bin in nanoseconds.
    pub bin: u64,
}

impl Window {
    /// Returns the last nanosecond that is drawn.
    fn last(&self) -> i64 {
        let span = i64::try_from(self.columns.span - 1).unwrap_or(i64::MAX);
        self.columns.from.saturating_add(span)
    }

    /// Returns the number of bins that cover the window.
    pub fn bins(&self) -> usize {
        self.columns.span.div_ceil(self.bin) as usize
    }

    /// Returns the index of the bin for a time. The last bin may extend beyond the window.
    fn bin_of(&self, at: i64) -> Option<usize> {
        let since = u64::try_from(at.checked_sub(self.columns.from)?).ok()?;
        let index = (since / self.bin) as usize;
        (index < self.bins()).then_some(index)
    }
}

/// Data of one link from a log.
#[derive(Debug)]
pub struct LogSeries {
    /// Link name.
    pub link: Name,
    /// Rows in the window.
    pub rows: u64,
    /// Bytes that arrived, by bin.
    pub offered: Vec<u64>,
    /// Bytes released, by bin.
    pub delivered: Vec<u64>,
    /// Services completed, by bin.
    pub served: Vec<Served>,
    /// Packets in the queue.
    pub queue_packets: Trace,
    /// Bytes in the queue.
    pub queue_bytes: Trace,
    /// Release minus arrival, in nanoseconds.
    pub delay: Trace,
    /// Arrival times of dropped frames.
    pub drops: Marks,
    /// Frequency of each delay.
    pub delays: FineSketch,
    /// Runs of lost frames.
    pub runs: LossRuns,
    /// Drops by reason.
    pub reasons: BTreeMap<String, u64>,
    queue: QueueSteps,
    services: Services,
}

impl LogSeries {
    fn new(link: Name, window: &Window) -> LogSeries {
        LogSeries {
            link,
            rows: 0,
            offered: vec![0; window.bins()],
            delivered: vec![0; window.bins()],
            served: vec![Served::default(); window.bins()],
            queue_packets: Trace::new(window.columns),
            queue_bytes: Trace::new(window.columns),
            delay: Trace::new(window.columns),
            drops: Marks::new(window.columns),
            delays: FineSketch::default(),
            runs: LossRuns::default(),
            reasons: BTreeMap::new(),
            queue: QueueSteps::default(),
            services: Services::default(),
        }
    }

    /// Adds a log row; times are relative to `origin`.
    fn add(&mut self, row: &Row, origin: i64, window: &Window) {
        if let Some(service) = self.services.of(row)
            && let Some(bin) = window.bin_of(service.until.saturating_sub(origin))
        {
            self.served[bin].add(&service);
        }
        let (packets, bytes) = (&mut self.queue_packets, &mut self.queue_bytes);
        self.queue
            .add(row, |step| hold(packets, bytes, step, origin));
        let arrival = row.arrival_ns.saturating_sub(origin);
        let release = row.release_ns.map(|at| at.saturating_sub(origin));
        let length = u64::from(row.length);
        // Copies are created by the link and so were not offered.
        let itself = row.copy == 0;
        if itself && let Some(bin) = window.bin_of(arrival) {
            self.offered[bin] += length;
        }
        let delivered = release.filter(|_| row.verdict == Fate::Deliver);
        if let Some(bin) = delivered.and_then(|at| window.bin_of(at)) {
            self.delivered[bin] += length;
        }
        if !(window.columns.from..=window.last()).contains(&arrival) {
            return;
        }
        self.rows += 1;
        if let Some(release) = delivered {
            let delay = release.saturating_sub(arrival).max(0).cast_unsigned();
            self.delay.add(arrival, delay);
            self.delays.add(delay);
        }
        if row.verdict == Fate::Drop {
            self.drops.add(arrival);
            self.count(row.reason.as_deref().unwrap_or("unknown"));
        }
        if itself && row.verdict != Fate::Held {
            self.runs.add(row.frame, row.verdict == Fate::Drop);
        }
    }

    /// Adds the data that is known only at the end of the log.
    fn finish(&mut self, origin: i64) {
        self.runs.finish();
        let (packets, bytes) = (&mut self.queue_packets, &mut self.queue_bytes);
        self.queue.finish(|step| hold(packets, bytes, step, origin));
    }

    fn count(&mut self, reason: &str) {
        if let Some(count) = self.reasons.get_mut(reason) {
            *count += 1;
        } else if self.reasons.len() < REASONS_MAX {
            self.reasons.insert(reason.to_owned(), 1);
        } else {
            *self.reasons.entry("other reasons".to_owned()).or_default() += 1;
        }
    }
}

/// Adds a queue step to the queue traces.
fn hold(packets: &mut Trace, bytes: &mut Trace, step: QueueStep, origin: i64) {
    let since = |at: i64| at.saturating_sub(origin);
    let (from, until) = (since(step.from), since(step.until));
    packets.hold(from, until, step.length.packets);
    bytes.hold(from, until, step.length.bytes);
}

/// Reads a log and returns the data in the window for each selected link.
///
/// # Errors
/// If the log cannot be read, has more links than a figure can distinguish, or has no frames in the
/// window.
pub fn gather(
    path: &Path,
    span: Span,
    window: &Window,
    selection: &Selection,
    mut at: impl FnMut(u64, u64),
) -> Result<Vec<LogSeries>, PlotError> {
    let mut series: Vec<LogSeries> = Vec::new();
    // Most rows have the same link as the previous row.
    let mut current = 0;
    for_rows(&mut LogReader::open(path)?, &mut at, |row, _| {
        if !selection.is_all() && !selection.has(&row.link) {
            return Ok(());
        }
        if series.get(current).is_none_or(|of| of.link != row.link) {
            let known = series.iter().position(|of| of.link == row.link);
            current = known.unwrap_or(series.len());
            if current == SERIES_MAX {
                return Err(too_many(path));
            }
            if known.is_none() {
                series.push(LogSeries::new(row.link.clone(), window));
            }
        }
        series[current].add(row, span.origin, window);
        Ok(())
    })?;
    if series.iter().all(|of| of.rows == 0) {
        let what = if series.is_empty() && !selection.is_all() {
            format!("no link matches {selection}")
        } else {
            "no frame arrived between --from and --until".to_owned()
        };
        return Err(PlotError::nothing(path, what));
    }
    for of in &mut series {
        of.finish(span.origin);
    }
    // Links are sorted, so that colours do not depend on which link sent first.
    series.sort_by(|a, b| rank(&a.link).cmp(&rank(&b.link)));
    Ok(series)
}

/// Returns a link's sort key: by name, up before down.
pub fn rank(link: &str) -> (&str, usize, &str) {
    const ORDER: [&str; 2] = ["up", "down"];
    let (name, direction) = link.rsplit_once('.').unwrap_or(("", link));
    match ORDER.iter().position(|known| *known == direction) {
        Some(place) => (name, place, ""),
        None => (link, ORDER.len(), direction),
    }
}

/// Returns the error for more links than a figure can distinguish.
pub fn too_many(path: &Path) -> PlotError {
    let what = format!("more than {SERIES_MAX} links; select some with --link or --direction");
    PlotError::nothing(path, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::fixture;

    fn window(from: i64, span: u64, bin: u64) -> Window {
        let count = 10;
        Window {
            columns: Columns { from, span, count },
            caption: SINCE_FIRST_FRAME,
            bin,
        }
    }

    #[test]
    fn bins_cover_the_window_and_the_last_may_reach_beyond() {
        let window = window(100, 25, 10);
        assert_eq!(window.bins(), 3);
        let bins = [100, 109, 124, 129].map(|at| window.bin_of(at));
        assert_eq!(bins, [0, 0, 2, 2].map(Some));
        for at in [99, 130, i64::MIN, i64::MAX] {
            assert_eq!(window.bin_of(at), None, "{at}");
        }
        assert_eq!(window.last(), 124);
    }

    #[test]
    fn copies_are_delivered_but_not_offered_and_drops_are_not_delivered() {
        let window = window(0, 1_000, 1_000);
        let mut series = LogSeries::new(Name::from("up"), &window);
        let row = Row {
            length: 100,
            release_ns: Some(5_300),
            ..fixture::row("up", 0, 5_000, Some(5_100))
        };
        let copy = Row {
            copy: 1,
            ..row.clone()
        };
        let dropped = Row {
            frame: 1,
            arrival_ns: 5_200,
            verdict: Fate::Drop,
            reason: Some(Name::from("loss")),
            release_ns: None,
            ..row.clone()
        };
        for row in [&row, &copy, &dropped] {
            series.add(row, 5_000, &window);
        }
        assert_eq!((series.offered[0], series.delivered[0]), (200, 200));
        assert_eq!(series.delays.total(), 2);
        assert_eq!(series.delay.range(), Some((300, 300)));
        assert_eq!(series.reasons, BTreeMap::from([("loss".to_owned(), 1)]));
        assert_eq!(series.runs.finish(), &BTreeMap::from([(1, 1)]));
        assert_eq!(series.drops.columns().collect::<Vec<_>>(), [(2, 1)]);
    }

    #[test]
    fn links_stand_in_the_order_of_reports() {
        let mut links = ["other", "down", "b.down", "up", "a", "b.up"];
        links.sort_by_key(|link| rank(link));
        assert_eq!(links, ["up", "down", "a", "b.up", "b.down", "other"]);
    }
}
