//! The verdicts of a recorded run, for comparison with another run.

use std::collections::BTreeMap;

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

/// Returns the delays of frames that one direction of a link delivered, in nanoseconds
/// since their arrivals, from a CSV log.
pub fn delays(file: &str, link: &str) -> Vec<i64> {
    let ([of, verdict, delay], rows) = read(file, ["link", "verdict", "delay_ns"]);
    let delivered = rows
        .iter()
        .filter(|fields| fields[of] == link && fields[verdict] == "deliver");
    delivered
        .map(|fields| fields[delay].parse().expect("a number"))
        .collect()
}

/// A frame that passed a link: arrival and sojourn time in nanoseconds, and length.
#[derive(Clone, Copy, Debug)]
pub struct FrameTimes {
    pub arrival: i64,
    pub time: i64,
    pub len: u32,
}

/// Returns the frames that passed one direction of a link, from a CSV log.
pub fn passed(file: &str, link: &str) -> Vec<FrameTimes> {
    let names = ["link", "arrival_ns", "sojourn_ns", "length"];
    let ([of, arrival, sojourn, length], rows) = read(file, names);
    let rows = rows.iter().filter_map(|fields| {
        let time: i64 = fields[sojourn].parse().ok()?;
        (fields[of] == link && time >= 0).then_some(FrameTimes {
            arrival: fields[arrival].parse().ok()?,
            time,
            len: fields[length].parse().ok()?,
        })
    });
    rows.collect()
}
