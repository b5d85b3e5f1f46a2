//! In-memory ports.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use longwire_engine::Nanos;
use longwire_io::port::own::{OwnRx, OwnTx};
use longwire_io::port::{PortError, PushResult, ReceiveResult, RxFrame, TxFrame, TxPort};

use crate::composed::offline::wire_frames;
use crate::composed::traffic::Buffer;

/// Provides buffers at their times.
pub struct Script {
    buffers: Vec<Buffer>,
    next: usize,
    start: Option<Nanos>,
    /// Whether all buffers have already arrived, with stamps.
    at_once: bool,
}

impl Script {
    /// Returns a script relative to `start` on a virtual clock, which the script's stamps advance.
    pub fn at(buffers: Vec<Buffer>, start: Nanos) -> Script {
        Script {
            buffers,
            next: 0,
            start: Some(start),
            at_once: true,
        }
    }

    /// Returns a script relative to the first call, on the real clock.
    pub fn live(buffers: Vec<Buffer>) -> Script {
        Script {
            buffers,
            next: 0,
            start: None,
            at_once: false,
        }
    }
}

impl OwnRx for Script {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let start = *self.start.get_or_insert(now);
        let mut frames = 0;
        while let Some(buffer) = self.buffers.get(self.next).filter(|_| frames < max) {
            let arrival = start.saturating_add(Nanos::from_nanos(buffer.at));
            if arrival > now && !self.at_once {
                break;
            }
            take(RxFrame {
                bytes: &buffer.bytes,
                arrival,
                offload: buffer.offload,
                wire_len: buffer.bytes.len() as u32,
                lent: None,
            });
            self.next += 1;
            frames += 1;
        }
        Ok(ReceiveResult {
            frames,
            end: self.next == self.buffers.len(),
        })
    }

    fn frame_max(&self) -> usize {
        65_550
    }
}

/// A departed wire frame's release and bytes.
pub type Frame = (Nanos, Vec<u8>);

/// Placeholder for the release of a frame that left in a buffer with earlier frames. Only the link
/// knows the release.
pub const UNKNOWN: Nanos = Nanos::MAX;

/// Keeps departed wire frames.
#[derive(Clone, Default)]
pub struct Sink {
    frames: Arc<Mutex<Vec<Frame>>>,
    pushed: usize,
}

impl Sink {
    /// Returns the departed frames.
    pub fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.frames.lock().expect("no panic"))
    }
}

impl OwnTx for Sink {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        let buffer = Buffer {
            at: 0,
            bytes: frame.bytes.to_vec(),
            offload: frame.offload,
        };
        let frames = wire_frames(&[buffer], frame.release);
        let mut left = self.frames.lock().expect("no panic");
        let first = left.len();
        left.extend(frames.into_iter().map(|frame| (frame.at, frame.bytes)));
        for frame in left.iter_mut().skip(first + 1) {
            frame.0 = UNKNOWN;
        }
        self.pushed += 1;
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.pushed))
    }

    fn free_slots(&self) -> usize {
        1_000
    }

    fn unsent(&self) -> usize {
        self.pushed
    }
}

/// A device around a sink. With offloads, it completes checksums and cuts super-packets.
pub struct Device {
    pub sink: Sink,
    pub takes_offload: bool,
}

impl TxPort for Device {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        OwnTx::push(&mut self.sink, frame)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        OwnTx::flush(&mut self.sink)
    }

    fn free_slots(&self) -> usize {
        OwnTx::free_slots(&self.sink)
    }

    fn unsent(&self) -> usize {
        OwnTx::unsent(&self.sink)
    }

    fn takes_offload(&self) -> bool {
        self.takes_offload
    }
}

/// Runs `work` on all `cases`, on a few threads, which mostly wait.
pub fn in_parallel<T: Sync, R: Send>(cases: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    let result = work(index, case);
                    results.lock().expect("no panic").push(result);
                }
            });
        }
    });
    results.into_inner().expect("no panic")
}
