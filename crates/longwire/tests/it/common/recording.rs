//! The verdicts of a recorded run, for comparison with another run.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A log row without its identification, compared as a whole.
pub type Rest = Vec<String>;

/// Reads a CSV log: the indices of these columns, and the rows.
fn read<const N: usize>(file: &str, names: [&str; N]) -> ([usize; N], Vec<Rest>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut rows = text
        .lines()
        .map(|line| line.split(',').map(str::to_owned).collect());
    let header: Rest = rows.next().expect("a header");
    let places = names.map(|name| {
        let found = header.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    });
    (places, rows.collect())
}

/// Returns the final rows of one link, keyed by frame and copy number.
pub fn decided(file: &str, link: &str) -> BTreeMap<(u64, u64), Rest> {
    let ([frame, copy, of, verdict], mut rows) = read(file, ["frame", "copy", "link", "verdict"]);
    rows.retain(|fields| fields[of] == link && fields[verdict] != "held");
    let number = |text: &str| text.parse().expect("a number");
    let key = |fields: &Rest| (number(&fields[frame]), number(&fields[copy]));
    rows.into_iter()
        .map(|fields| (key(&fields), fields))
        .collect()
}

/// A frame of a link: arrival and a time since then in nanoseconds, and length.
#[derive(Clone, Copy, Debug)]
pub struct FrameTimes {
    pub arrival: i64,
    pub time: i64,
    pub len: u32,
}

/// Returns the frames that one direction of a link delivered, with their delays, from a CSV
/// log.
pub fn delivered(file: &str, link: &str) -> Vec<FrameTimes> {
    frames(file, link, "delay_ns", |verdict| verdict == "deliver")
}

/// Returns the frames that passed one direction of a link, with their sojourn times in the
/// queue, from a CSV log.
pub fn passed(file: &str, link: &str) -> Vec<FrameTimes> {
    frames(file, link, "sojourn_ns", |_| true)
}

fn frames(file: &str, link: &str, time: &str, has: fn(&str) -> bool) -> Vec<FrameTimes> {
    let names = ["link", "arrival_ns", time, "length", "verdict"];
    let ([of, arrival, time, length, verdict], rows) = read(file, names);
    let rows = rows.iter().filter_map(|fields| {
        let time: i64 = fields[time].parse().ok()?;
        let is_one = fields[of] == link && time >= 0 && has(&fields[verdict]);
        is_one.then_some(FrameTimes {
            arrival: fields[arrival].parse().ok()?,
            time,
            len: fields[length].parse().ok()?,
        })
    });
    rows.collect()
}

/// Returns the longest delay of each direction of a link, by name, among the frames that
/// arrived within these seconds of the run, from a CSV log.
pub fn longest_delays(file: &str, seconds: RangeInclusive<f64>) -> BTreeMap<String, i64> {
    let names = ["link", "arrival_ns", "delay_ns", "verdict"];
    let ([of, arrival, delay, verdict], rows) = read(file, names);
    let mut longest = BTreeMap::new();
    for fields in rows.iter().filter(|fields| fields[verdict] == "deliver") {
        let number = |column: usize| fields[column].parse::<i64>().expect("a number");
        if seconds.contains(&(number(arrival) as f64 / 1e9)) {
            let entry = longest.entry(fields[of].clone()).or_insert(0);
            *entry = number(delay).max(*entry);
        }
    }
    longest
}
