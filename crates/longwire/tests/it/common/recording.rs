//! Verdicts of a recorded run, for comparison with another run.

use std::collections::{BTreeMap, BTreeSet};

use longwire_capture::log::{Fate, LogReader, Row};

use super::rows_of;

/// Returns the final rows of a link, keyed by frame and copy number.
pub fn decided(file: &str, link: &str) -> BTreeMap<(u64, u16), Row> {
    let mut rows = rows_of(file);
    rows.retain(|row| &*row.link == link && row.verdict != Fate::Held);
    rows.into_iter()
        .map(|row| ((row.frame, row.copy), row))
        .collect()
}

/// Asserts that a simulation decided each frame of a link as the live run did. Returns the number
/// of frames, which must exceed `least`.
#[track_caller]
pub fn assert_decided_alike(live: &str, simulated: &str, link: &str, least: usize) -> usize {
    let (live, again) = (decided(live, link), decided(simulated, link));
    assert!(live.len() > least, "{link}: {} rows", live.len());
    for (frame, row) in &live {
        assert_eq!(Some(row), again.get(frame), "{link}");
    }
    live.len()
}

/// A delivered frame.
#[derive(Clone, Debug)]
pub struct FrameTimes {
    /// Link direction.
    pub link: String,
    /// Nanoseconds since the run's epoch.
    pub arrival: i64,
    /// Nanoseconds since arrival.
    pub delay: i64,
    pub len: u32,
}

/// Returns the frames delivered by any link in a log.
pub fn all_delivered(file: &str) -> Vec<FrameTimes> {
    let mut log = LogReader::open(file).expect("a log");
    let rows: Result<Vec<Row>, _> = log.by_ref().collect();
    let epoch = log.epoch().unwrap_or_default();
    let frames = rows.expect("rows").into_iter().filter_map(|row| {
        let release = row.release_ns.filter(|_| row.verdict == Fate::Deliver)?;
        Some(FrameTimes {
            link: row.link.to_string(),
            arrival: row.arrival_ns - epoch,
            delay: release - row.arrival_ns,
            len: row.length,
        })
    });
    frames.collect()
}

/// Returns the frames delivered by one link direction.
pub fn delivered(file: &str, link: &str) -> Vec<FrameTimes> {
    let mut frames = all_delivered(file);
    frames.retain(|frame| frame.link == link);
    frames
}

/// Asserts that a link delivered at least `least` frames, all with this delay.
#[track_caller]
pub fn assert_delays(file: &str, link: &str, least: usize, delay_ms: i64) {
    let frames = delivered(file, link);
    let delay = delay_ms * 1_000_000;
    let right = frames.iter().all(|frame| frame.delay == delay);
    assert!(frames.len() >= least && right, "{link}: {frames:?}");
}

/// Asserts that each of two directions delivered at least `least` frames, all with this delay;
/// returns their names.
#[track_caller]
pub fn assert_both_delay(file: &str, least: usize, delay_ms: i64) -> Vec<String> {
    let frames = all_delivered(file).into_iter();
    let directions: BTreeSet<String> = frames.map(|frame| frame.link).collect();
    assert_eq!(directions.len(), 2, "{directions:?}");
    for direction in &directions {
        assert_delays(file, direction, least, delay_ms);
    }
    directions.into_iter().collect()
}
