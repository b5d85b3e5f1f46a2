//! Runs between capture files, shared by tests.
#![allow(dead_code, reason = "each test uses its part")]

pub mod network;

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::{LinkConfig, Nanos, models};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::own::OwnTx;
use longwire_io::port::registry;
use longwire_io::{PortError, PushResult, ReceiveResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig, RunReport, start};
use longwire_testbed::support::Folder;

/// Writes frames of 60 to 1,000 bytes, `gap` apart, that begin with their number.
pub fn write_input(path: &str, frames: u32, gap: Nanos) {
    let mut writer = CaptureWriter::create(path).expect("the input is made");
    for number in 0..frames {
        let mut frame = vec![0u8; 60 + (number as usize * 37) % 940];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        let stamp = Nanos::from_nanos(1_000_000_000 + u64::from(number) * gap.as_nanos());
        writer
            .write(stamp, &frame, frame.len() as u32)
            .expect("a frame is written");
    }
    writer.finish().expect("the input is whole");
}

/// Returns numbers and stamps of the frames in a capture.
pub fn read_output(path: &str) -> Vec<(u32, u64)> {
    let mut reader = CaptureReader::open(path).expect("the output opens");
    let mut frames = Vec::new();
    while let Some(record) = reader.next().expect("the output is whole") {
        let number = u32::from_be_bytes([
            record.bytes[0],
            record.bytes[1],
            record.bytes[2],
            record.bytes[3],
        ]);
        frames.push((number, record.stamp.as_nanos()));
    }
    frames
}

/// Runs a link between two captures until it ends.
pub fn run(folder: &Folder, config: LinkConfig, run: RunConfig) -> (RunReport, Vec<(u32, u64)>) {
    let (input, output) = (folder.file("in.pcap"), folder.file("out.pcap"));
    let options = OpenOptions::default();
    let a = registry::open(&format!("pcap:in={input}"), &options).expect("the input opens");
    let b = registry::open(&format!("pcap:out={output}"), &options).expect("the output opens");
    let setup = LinkSetup::new("ab", config);
    let plan = NetworkPlan::link(a, b, setup, None);
    let running = start(plan, run, None).expect("the run starts");
    assert!(
        running.wait(Duration::from_secs(30)),
        "the run ends with its input"
    );
    let report = running.stop();
    assert!(Path::new(&output).exists());
    (report, read_output(&output))
}

/// A port whose frames arrive at given times, at most `burst_max` per call.
pub struct Arrivals {
    pub frames: Vec<(Nanos, Vec<u8>)>,
    pub next: usize,
    pub burst_max: usize,
}

impl Arrivals {
    pub fn new(frames: Vec<(Nanos, Vec<u8>)>, burst_max: usize) -> Arrivals {
        Arrivals {
            frames,
            next: 0,
            burst_max,
        }
    }
}

impl RxPort for Arrivals {
    fn receive(
        &mut self,
        _now: Nanos,
        max: usize,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let burst = self.frames[self.next..].iter();
        let mut frames = 0;
        for (arrival, bytes) in burst.take(max.min(self.burst_max)) {
            take(RxFrame::whole(bytes, *arrival));
            frames += 1;
        }
        self.next += frames;
        Ok(ReceiveResult {
            frames,
            end: self.next == self.frames.len(),
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn frame_max(&self) -> usize {
        1_514
    }
}

/// Keeps departing frames; accepts only `room` frames per flush.
pub struct Kept {
    pub frames: Vec<(Nanos, Vec<u8>)>,
    pushed: usize,
    room: usize,
}

impl Kept {
    pub fn new(room: usize) -> Kept {
        Kept {
            frames: Vec::new(),
            pushed: 0,
            room,
        }
    }
}

impl TxPort for Kept {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if self.pushed == self.room {
            return PushResult::Full;
        }
        self.pushed += 1;
        self.frames.push((frame.release, frame.bytes.to_vec()));
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.pushed))
    }

    fn free_slots(&self) -> usize {
        self.room - self.pushed
    }

    fn unsent(&self) -> usize {
        self.pushed
    }
}

/// A sending half that passes frames to a function; accepted frames leave with the next
/// flush.
pub struct PushFn<F> {
    push: F,
    taken: usize,
}

impl<F: FnMut(TxFrame<'_>) -> PushResult> PushFn<F> {
    pub fn new(push: F) -> PushFn<F> {
        PushFn { push, taken: 0 }
    }
}

impl<F: FnMut(TxFrame<'_>) -> PushResult + Send> OwnTx for PushFn<F> {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        let pushed = (self.push)(frame);
        self.taken += usize::from(pushed == PushResult::Taken);
        pushed
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.taken))
    }

    fn free_slots(&self) -> usize {
        usize::MAX
    }

    fn unsent(&self) -> usize {
        self.taken
    }
}

/// Returns a link with only a delay.
pub fn delayed(delay: &str) -> LinkConfig {
    LinkConfig {
        delay: models::DELAY.parse(delay).expect("a delay"),
        ..LinkConfig::default()
    }
}
