//! The decisions of a recorded run, for comparison with another.

use std::collections::BTreeMap;

/// A row of a log without its identification, to be compared as a whole.
pub type Rest = Vec<String>;

/// The rows of a log in CSV, and the places of these columns in them.
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

/// The final rows of one link, by the number of the frame and of its copy.
pub fn decided(file: &str, link: &str) -> BTreeMap<(u64, u64), Rest> {
    let ([frame, copy, of, verdict], mut rows) = read(file, ["frame", "copy", "link", "verdict"]);
    rows.retain(|fields| fields[of] == link && fields[verdict] != "held");
    let number = |text: &str| text.parse().expect("a number");
    let key = |fields: &Rest| (number(&fields[frame]), number(&fields[copy]));
    rows.into_iter()
        .map(|fields| (key(&fields), fields))
        .collect()
}

/// The delays of the frames that one direction of a link delivered, in nanoseconds after
/// their arrivals, by a log in CSV.
pub fn delays(file: &str, link: &str) -> Vec<i64> {
    let ([of, verdict, delay], rows) = read(file, ["link", "verdict", "delay_ns"]);
    let delivered = rows
        .iter()
        .filter(|fields| fields[of] == link && fields[verdict] == "deliver");
    delivered
        .map(|fields| fields[delay].parse().expect("a number"))
        .collect()
}

/// A frame that passed a link: its arrival, the time until its last bit departed
/// (nanoseconds), and its length.
#[derive(Clone, Copy, Debug)]
pub struct FrameTimes {
    pub arrival: i64,
    pub time: i64,
    pub len: u32,
}

/// The frames that passed one direction of a link, by a log in CSV.
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
