//! Super-packets: which of their frames leave together.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use longwire_io::Offload;
use longwire_io::port::offload::{self, TrainPart, WireFrames};

/// Adjacent wire frames of one buffer that leave at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub release: Nanos,
    first: usize,
    end: usize,
}

/// Adjacent wire frames of a buffer, as one buffer.
pub(crate) struct Cut<'a> {
    pub bytes: &'a [u8],
    pub offload: Offload,
    pub wire_frames: u64,
    /// Its place in the buffer, if it is not all of it.
    pub part: Option<TrainPart>,
}

/// Splits one buffer, wire frame by wire frame.
///
/// Scratch memory is kept from buffer to buffer.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    buffer: Vec<u8>,
    piece: Vec<u8>,
    offload: Offload,
    lens: Option<WireFrames>,
    wire_frames: usize,
    next: usize,
    run: Option<Run>,
    /// The number of the train.
    train: u64,
}

/// Bits of a number that distinguish the trains of one input port.
const TRAIN_BITS: u32 = 32;

/// Numbers the trains of an input port, apart from those of others.
#[derive(Debug)]
pub(super) struct TrainNumbers {
    port: u64,
    next: u32,
}

impl TrainNumbers {
    pub fn new() -> TrainNumbers {
        static PORTS: AtomicU64 = AtomicU64::new(0);
        let port = PORTS.fetch_add(1, Ordering::Relaxed) & 0xffff;
        TrainNumbers {
            port: port << TRAIN_BITS,
            next: 0,
        }
    }

    /// Returns the number of the next train. It wraps: a train that is 2^32 older has
    /// left.
    pub fn next(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.port | u64::from(self.next)
    }
}

impl Cutter {
    /// Starts on a buffer, the train of this number.
    pub fn start(&mut self, train: u64, bytes: &[u8], offload: Offload) {
        self.train = train;
        self.buffer.clear();
        self.buffer.extend_from_slice(bytes);
        self.offload = offload;
        self.lens = offload
            .segments
            .map(|segments| segments.wire_frames(bytes.len()));
        self.wire_frames = self.lens.as_ref().map_or(1, ExactSizeIterator::len);
        self.next = 0;
        self.run = None;
    }

    /// Returns the length of the next wire frame.
    pub fn next_wire_len(&mut self) -> Option<u32> {
        match &mut self.lens {
            Some(lens) => lens.next().map(|len| len as u32),
            None => (self.next == 0).then_some(self.buffer.len() as u32),
        }
    }

    /// Takes the decision for that wire frame; returns the run that it ends.
    pub fn decided(&mut self, release: Option<Nanos>) -> Option<Run> {
        let index = self.next;
        self.next += 1;
        if let (Some(run), Some(release)) = (&mut self.run, release)
            && run.release == release
        {
            run.end = index + 1;
            return None;
        }
        let started = release.map(|release| Run {
            release,
            first: index,
            end: index + 1,
        });
        std::mem::replace(&mut self.run, started)
    }

    /// Returns the run that ends with the buffer.
    pub fn last_run(&mut self) -> Option<Run> {
        self.run.take()
    }

    /// Makes the buffers that carry a run: one, if the output port supports
    /// offloads; otherwise each wire frame, finished.
    pub fn cut(&mut self, run: Run, keep_offload: bool, mut keep: impl FnMut(&Cut<'_>)) {
        let whole = run.first == 0 && run.end == self.wire_frames;
        if whole && (keep_offload || self.offload.segments.is_none()) {
            if !keep_offload && let Some(checksum) = self.offload.checksum {
                offload::finish_checksum(&mut self.buffer, checksum);
                self.offload.checksum = None;
            }
            keep(&Cut {
                bytes: &self.buffer,
                offload: self.offload,
                wire_frames: self.wire_frames as u64,
                part: None,
            });
            return;
        }
        let Some(segments) = self.offload.segments else {
            return;
        };
        let step = if keep_offload { run.end - run.first } else { 1 };
        let mut first = run.first;
        while first < run.end {
            let end = (first + step).min(run.end);
            self.piece.clear();
            let made = offload::cut(&self.buffer, segments, first..end, &mut self.piece);
            if let Some(offload) = made {
                keep(&Cut {
                    bytes: &self.piece,
                    offload,
                    wire_frames: (end - first) as u64,
                    part: u16::try_from(first).ok().map(|index| TrainPart {
                        train: self.train,
                        index,
                        segments,
                    }),
                });
            }
            first = end;
        }
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
