//! Super-packets: which of their frames leave together.

use longwire_engine::Nanos;
use longwire_io::Offload;
use longwire_io::port::offload::{self, WireFrames};

/// Adjacent wire frames of one buffer that leave at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub release: Nanos,
    first: usize,
    end: usize,
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
}

impl Cutter {
    /// Starts on a buffer.
    pub fn start(&mut self, bytes: &[u8], offload: Offload) {
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
    pub fn cut(&mut self, run: Run, keep_offload: bool, mut keep: impl FnMut(&[u8], Offload, u64)) {
        let whole = run.first == 0 && run.end == self.wire_frames;
        if whole && (keep_offload || self.offload.segments.is_none()) {
            if !keep_offload && let Some(checksum) = self.offload.checksum {
                offload::finish_checksum(&mut self.buffer, checksum);
                self.offload.checksum = None;
            }
            keep(&self.buffer, self.offload, self.wire_frames as u64);
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
                keep(&self.piece, offload, (end - first) as u64);
            }
            first = end;
        }
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
