//! Runs the program, writes its input captures, and creates networks.
#![allow(
    dead_code,
    reason = "each test file is a program of its own and uses some of these"
)]

pub mod containerd;
pub mod node;
pub mod plugin;
pub mod program;
pub mod recording;
pub mod site;
pub mod user;

use std::fs::set_permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longwire_capture::CaptureReader;
use longwire_capture::log::{LogReader, Row};
use longwire_testbed::support::{capture, rows};
use serde_json::Value;

pub use longwire_testbed::support::have;
pub use program::longwire;

/// A captured frame: timestamp in nanoseconds, and length.
pub type Frame = (u64, usize);

/// A time in 2023, in nanoseconds since 1970.
pub const EPOCH: u64 = 1_700_000_000_000_000_000;

/// Nanoseconds per millisecond.
pub const MS: u64 = 1_000_000;

/// Returns a pcap file with nanosecond timestamps.
pub fn pcap(frames: &[Frame]) -> Vec<u8> {
    let bytes = |number, len| (0..len).map(move |at| (at + number) as u8);
    let frames = frames.iter().enumerate();
    let frames = frames.map(|(number, (at, len))| (*at, bytes(number, *len).collect::<Vec<_>>()));
    capture::pcap(1, frames)
}

/// Reads the frames of a pcap file with nanosecond timestamps.
pub fn frames(file: &str) -> Vec<Frame> {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let records = capture::records(&bytes).into_iter();
    let frames: Vec<Frame> = records.map(|(stamp, bytes)| (stamp, bytes.len())).collect();
    let whole: usize = frames.iter().map(|(_, len)| 16 + len).sum();
    assert_eq!(bytes.len(), 24 + whole, "{file}: its last record is cut");
    frames
}

/// Returns the complete records of a little-endian pcap file; empty if it has no header yet.
pub fn records(file: &str) -> Vec<Vec<u8>> {
    let records = capture::records(&std::fs::read(file).unwrap_or_default());
    records.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Returns the frames of a capture in any format: times, names of their interfaces, and bytes.
pub fn captured(file: &str) -> Vec<(u64, String, Vec<u8>)> {
    let mut reader = CaptureReader::open(file).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        let (at, bytes) = (record.stamp.as_nanos(), record.bytes.to_vec());
        let interface = record.interface;
        let name = reader.interface_name(interface).unwrap_or_default();
        frames.push((at, name.to_owned(), bytes));
    }
    frames
}

/// Returns the rows of a verdict log.
pub fn rows_of(log: &str) -> Vec<Row> {
    let rows = LogReader::open(log).and_then(Iterator::collect);
    rows.unwrap_or_else(|error| panic!("{log}: {error}"))
}

pub fn set_mode(file: impl AsRef<Path>, mode: u32) {
    set_permissions(file, PermissionsExt::from_mode(mode)).expect("its own file");
}

/// Writes a file that only its owner may read.
pub fn write_private(file: &str, bytes: impl AsRef<[u8]>) {
    write(file, bytes);
    set_mode(file, 0o600);
}

pub fn write(file: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let file = file.as_ref();
    std::fs::write(file, bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

pub fn read(file: impl AsRef<Path>) -> String {
    let file = file.as_ref();
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

pub fn read_json(file: &str) -> Value {
    let text = read(file);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}: {text}"))
}

/// Returns a JSON value as a count; panics if it is not a whole number.
#[track_caller]
pub fn count(value: &Value) -> u64 {
    let Some(count) = value.as_u64() else {
        panic!("{value} is not a count");
    };
    count
}

/// Returns a JSON value as a number; panics if it is not one.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    let Some(number) = value.as_f64() else {
        panic!("{value} is not a number");
    };
    number
}

#[track_caller]
pub fn list(value: &Value) -> &Vec<Value> {
    let Some(list) = value.as_array() else {
        panic!("{value} is not a list");
    };
    list
}

/// Returns the list entry with this name.
#[track_caller]
pub fn named<'a>(entries: &'a Value, name: &str) -> &'a Value {
    let Some(found) = list(entries).iter().find(|entry| entry["name"] == name) else {
        panic!("no {name} in {entries}");
    };
    found
}

/// Sums an object of counts, such as a link's drops.
pub fn sum(counts: &Value) -> u64 {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(_, value)| count(value)).sum()
}

/// Asserts that `longwire` refuses the command line in each row, which also gives the exit code and
/// the texts of the error, separated by semicolons.
#[track_caller]
pub fn assert_refused(table: &str) {
    for [line, code, texts] in rows(table) {
        let ran = longwire(line);
        assert_eq!(
            (ran.code.to_string(), &*ran.stdout),
            (code.to_owned(), ""),
            "{ran:?}"
        );
        for text in texts.split("; ") {
            assert!(ran.stderr.contains(text), "no '{text}': {ran:?}");
        }
        let errors = ran.stderr.lines().filter(|line| line.starts_with("error:"));
        assert_eq!(errors.count(), 1, "{ran:?}");
    }
}
