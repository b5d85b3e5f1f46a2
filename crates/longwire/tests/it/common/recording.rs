//! The decisions of a recorded run, for comparison with another.

use std::collections::BTreeMap;

/// A row of a log without its identification, to be compared as a whole.
pub type Rest = Vec<String>;

/// The final rows of one link, by the number of the frame and of its copy.
pub fn decided(file: &str, link: &str) -> BTreeMap<(u64, u64), Rest> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    };
    let (frame, copy) = (column("frame"), column("copy"));
    let (of, verdict) = (column("link"), column("verdict"));
    let mut rows = BTreeMap::new();
    for line in lines {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        if fields[of] != link || fields[verdict] == "held" {
            continue;
        }
        let number = |at: usize| fields[at].parse().expect("a number");
        rows.insert((number(frame), number(copy)), fields);
    }
    rows
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
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    };
    let (of, arrival) = (column("link"), column("arrival_ns"));
    let (sojourn, length) = (column("sojourn_ns"), column("length"));
    let rows = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let time: i64 = fields[sojourn].parse().ok()?;
        (fields[of] == link && time >= 0).then_some(FrameTimes {
            arrival: fields[arrival].parse().ok()?,
            time,
            len: fields[length].parse().ok()?,
        })
    });
    rows.collect()
}
