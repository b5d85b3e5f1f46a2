//! Runs between capture files, shared by several tests.
#![allow(dead_code, reason = "each test uses its part")]

pub mod network;
pub mod recorder;

use std::time::Duration;

use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::{LinkConfig, Nanos, models};
use longwire_io::port::one_way::{DiscardTx, SilentRx};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::own::OwnRx;
use longwire_io::port::{AnyRx, AnyTx, Port, registry};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig, RunReport, RunningNetwork, start};
use longwire_testbed::support::Folder;

/// Writes frames with their timestamps, bytes and original lengths.
pub fn write_capture(path: &str, frames: impl IntoIterator<Item = (Nanos, Vec<u8>, u32)>) {
    let mut writer = CaptureWriter::create(path).expect("a capture is created");
    for (stamp, bytes, wire_len) in frames {
        let written = writer.write(stamp, &bytes, wire_len);
        written.expect("a frame is written");
    }
    writer.finish().expect("the capture is complete");
}

/// Writes frames of 60 to 1,000 bytes, `gap` apart, each beginning with its number.
pub fn write_input(path: &str, frames: u32, gap: Nanos) {
    let frame = |number: u32| {
        let mut frame = vec![0u8; 60 + (number as usize * 37) % 940];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        let stamp = Nanos::from_nanos(1_000_000_000 + u64::from(number) * gap.as_nanos());
        let len = frame.len() as u32;
        (stamp, frame, len)
    };
    write_capture(path, (0..frames).map(frame));
}

/// Returns the numbers and timestamps of a capture's frames.
pub fn read_output(path: &str) -> Vec<(u32, u64)> {
    let mut reader = CaptureReader::open(path).expect("the output opens");
    let mut frames = Vec::new();
    while let Some(record) = reader.next().expect("the output is whole") {
        let number = record.bytes.first_chunk().expect("a number");
        frames.push((u32::from_be_bytes(*number), record.stamp.as_nanos()));
    }
    frames
}

/// Runs a link between two captures until it ends.
pub fn run(folder: &Folder, config: LinkConfig, run: RunConfig) -> (RunReport, Vec<(u32, u64)>) {
    let running = begin(folder, config, run);
    let ended = running.wait(Duration::from_secs(30));
    assert!(ended, "the run ends with its input");
    let report = running.stop();
    (report, read_output(&folder.file("out.pcap")))
}

/// Starts a link between two captures.
pub fn begin(folder: &Folder, config: LinkConfig, run: RunConfig) -> RunningNetwork {
    let open = |port: &str, name: &str| {
        let port = format!("pcap:{port}={}", folder.file(name));
        registry::open(&port, &OpenOptions::default()).expect("a capture opens")
    };
    let (a, b) = (open("in", "in.pcap"), open("out", "out.pcap"));
    let plan = NetworkPlan::link(a, b, LinkSetup::new("ab", config), None);
    start(plan, run, None).expect("the run starts")
}

/// Returns a port that only receives.
pub fn input(name: &str, rx: impl OwnRx + 'static) -> Port {
    let tx = AnyTx::Discard(DiscardTx::default());
    Port::with_halves(name, AnyRx::Own(Box::new(rx)), tx)
}

/// Returns a port that only sends.
pub fn output(name: &str, tx: impl TxPort + Send + 'static) -> Port {
    Port::with_halves(name, AnyRx::Silent(SilentRx), AnyTx::Own(Box::new(tx)))
}

/// A sending half that passes frames to a function. Accepted frames leave with the next flush.
pub struct PushFn<F> {
    push: F,
    taken: usize,
    /// Maximum number of frames per flush.
    pub room: usize,
    pub takes_offload: bool,
}

impl<F: FnMut(TxFrame<'_>) -> PushResult> PushFn<F> {
    pub fn new(push: F) -> PushFn<F> {
        PushFn {
            push,
            taken: 0,
            room: usize::MAX,
            takes_offload: false,
        }
    }
}

impl<F: FnMut(TxFrame<'_>) -> PushResult> TxPort for PushFn<F> {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if self.taken == self.room {
            return PushResult::Full;
        }
        let pushed = (self.push)(frame);
        self.taken += usize::from(pushed == PushResult::Taken);
        pushed
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.taken))
    }

    fn free_slots(&self) -> usize {
        self.room - self.taken
    }

    fn unsent(&self) -> usize {
        self.taken
    }

    fn takes_offload(&self) -> bool {
        self.takes_offload
    }
}

/// Returns a link with only a delay.
pub fn delayed(delay: &str) -> LinkConfig {
    LinkConfig {
        delay: models::DELAY.parse(delay).expect("a delay"),
        ..LinkConfig::default()
    }
}
