//! Verdicts of a recorded run, for comparison with another run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::read;

/// A log row without the columns that identify it.
pub type Rest = Vec<String>;

/// Reads a CSV log; returns the indices of these columns and the rows.
fn table<const N: usize>(file: &str, names: [&str; N]) -> ([usize; N], Vec<Rest>) {
    let text = read(file);
    let rows = text
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect());
    let mut rows = rows.collect::<Vec<Rest>>().into_iter();
    let header: Rest = rows.next().expect("a header");
    let places = names.map(|name| {
        let found = header.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    });
    (places, rows.collect())
}

/// Returns the final rows of a link, keyed by frame and copy number.
pub fn decided(file: &str, link: &str) -> BTreeMap<(u64, u64), Rest> {
    let ([frame, copy, of, verdict], mut rows) = table(file, ["frame", "copy", "link", "verdict"]);
    rows.retain(|fields| fields[of] == link && fields[verdict] != "held");
    let number = |text: &str| text.parse().expect("a number");
    let key = |fields: &Rest| (number(&fields[frame]), number(&fields[copy]));
    rows.into_iter()
        .map(|fields| (key(&fields), fields))
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

/// Returns the frames delivered by any link in a CSV log.
pub fn all_delivered(file: &str) -> Vec<FrameTimes> {
    let names = ["link", "arrival_ns", "delay_ns", "length", "verdict"];
    let ([link, arrival, delay, length, verdict], rows) = table(file, names);
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let rows = rows
        .into_iter()
        .filter(|fields| fields[verdict] == "deliver");
    let rows = rows.map(|fields| FrameTimes {
        arrival: number(&fields[arrival]),
        delay: number(&fields[delay]),
        len: number(&fields[length]) as u32,
        link: fields[link].clone(),
    });
    rows.collect()
}

/// Returns the frames delivered by one link direction.
pub fn delivered(file: &str, link: &str) -> Vec<FrameTimes> {
    let mut frames = all_delivered(file);
    frames.retain(|frame| frame.link == link);
    frames
}

/// Returns the longest delay of each direction, in nanoseconds, among frames that arrived in this
/// range of run time.
pub fn longest_delays(frames: &[FrameTimes], range: &RangeInclusive<i64>) -> BTreeMap<String, i64> {
    let mut longest = BTreeMap::new();
    for frame in frames.iter().filter(|frame| range.contains(&frame.arrival)) {
        let entry = longest.entry(frame.link.clone()).or_insert(0);
        *entry = frame.delay.max(*entry);
    }
    longest
}

/// Asserts that a link delivered at least `least` frames, all with this delay.
#[track_caller]
pub fn assert_delays(file: &str, link: &str, least: usize, delay_ms: i64) {
    let frames = delivered(file, link);
    let delay = delay_ms * 1_000_000;
    let right = frames.iter().all(|frame| frame.delay == delay);
    assert!(frames.len() >= least && right, "{link}: {frames:?}");
}
