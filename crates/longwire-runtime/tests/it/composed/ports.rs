//! In-memory ports.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use longwire_engine::Nanos;
use longwire_io::Offload;
use longwire_io::port::own::OwnRx;
use longwire_io::port::{PortError, PushResult, ReceiveResult, RxFrame, TxFrame};

use crate::common::PushFn;
use crate::composed::offline::wire_frames;
use crate::composed::traffic::{Buffer, plain};

/// Provides buffers at their times.
pub struct Script {
    buffers: Vec<Buffer>,
    next: usize,
    start: Option<Nanos>,
    /// Whether all buffers have already arrived, with stamps.
    at_once: bool,
    burst_max: usize,
}

/// Provides frames at their times on a virtual clock, at most `burst_max` at once.
pub fn arrivals(frames: Vec<(Nanos, Vec<u8>)>, burst_max: usize) -> Box<dyn OwnRx> {
    let buffers = frames.into_iter();
    let buffers = buffers
        .map(|(at, bytes)| plain(at.as_nanos(), bytes))
        .collect();
    Box::new(Script::at(buffers, Nanos::ZERO).in_bursts(burst_max))
}

impl Script {
    /// Returns a script relative to `start` on a virtual clock, which the script's stamps advance.
    pub fn at(buffers: Vec<Buffer>, start: Nanos) -> Script {
        Script {
            start: Some(start),
            at_once: true,
            ..Script::live(buffers)
        }
    }

    /// Returns a script relative to the first call, on the real clock.
    pub fn live(buffers: Vec<Buffer>) -> Script {
        Script {
            buffers,
            next: 0,
            start: None,
            at_once: false,
            burst_max: usize::MAX,
        }
    }

    /// Provides at most `burst_max` buffers at once.
    pub fn in_bursts(self, burst_max: usize) -> Script {
        Script { burst_max, ..self }
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
        let (mut frames, max) = (0, max.min(self.burst_max));
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

/// A sink that keeps departed wire frames.
#[derive(Default)]
pub struct Sink(Arc<Mutex<Vec<Frame>>>);

impl Sink {
    /// Returns the departed frames.
    pub fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }

    /// Returns a port to the sink. With offloads, it completes checksums and cuts super-packets.
    pub fn port(
        &self,
        takes_offload: bool,
    ) -> PushFn<impl FnMut(TxFrame<'_>) -> PushResult + Send + use<>> {
        let frames = Arc::clone(&self.0);
        let push = move |frame: TxFrame<'_>| {
            assert!(takes_offload || frame.offload == Offload::NONE);
            let buffer = Buffer {
                at: 0,
                bytes: frame.bytes.to_vec(),
                offload: frame.offload,
            };
            let wire = wire_frames(&[buffer], frame.release).into_iter();
            let wire = wire.map(|frame| (frame.at, frame.bytes)).enumerate();
            let mut frames = frames.lock().expect("no panic");
            frames.extend(wire.map(|(index, (at, bytes))| match index {
                0 => (at, bytes),
                _ => (UNKNOWN, bytes),
            }));
            PushResult::Taken
        };
        let mut port = PushFn::new(push);
        port.takes_offload = takes_offload;
        port
    }
}

/// Runs `work` on each case on six threads; live runs mostly sleep, so the threads may outnumber
/// the cores. Returns results in completion order.
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
