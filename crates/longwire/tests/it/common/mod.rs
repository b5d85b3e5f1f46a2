//! Runs the program, writes captures for it, and creates networks.
#![allow(
    dead_code,
    reason = "each test file is a program of its own and uses some of these"
)]

pub mod containerd;
pub mod process;
pub mod recording;
pub mod site;
pub mod wire;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use longwire_testbed::support::capture;
pub use longwire_testbed::support::have;

/// The result of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `longwire` with these arguments.
pub fn longwire(arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(arguments)
        .output();
    ran(output.unwrap_or_else(|error| panic!("longwire does not start: {error}")))
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        signal: output.status.signal(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ran {
    /// Parses the output of `--json`.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A captured frame: timestamp in nanoseconds, and length.
pub type Frame = (u64, usize);

/// A day in 2023, in nanoseconds since 1970.
pub const EPOCH: u64 = 1_700_000_000_000_000_000;

/// Returns a pcap file with nanosecond timestamps.
pub fn pcap(frames: &[Frame]) -> Vec<u8> {
    let bytes = |number, len| {
        (0..len)
            .map(move |at| (at + number) as u8)
            .collect::<Vec<u8>>()
    };
    let frames = frames.iter().enumerate();
    capture::pcap(
        1,
        frames.map(|(number, (stamp, len))| (*stamp, bytes(number, *len))),
    )
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

pub fn write(file: &str, bytes: &[u8]) {
    std::fs::write(file, bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
}
