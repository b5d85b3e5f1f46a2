//! Cuts super-packets into runs of frames that leave together.

use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::Nanos;
use longwire_io::Offload;
use longwire_io::port::Segments;
use longwire_io::port::offload::{self, SuperPacket, TrainPart, WireFrames};

/// Form of the frames cut from an offloaded buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutForm {
    /// Frames that leave together form one buffer, with the input's offloads.
    Trains,
    /// Wire frames whose checksums are left to the output port. For a stage without a link: the
    /// deciding stage completes the frames whose bytes it needs.
    Unfinished,
    /// Wire frames with complete checksums.
    Finished,
}

/// Adjacent wire frames in a buffer that have the same release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub release: Nanos,
    first: usize,
    end: usize,
}

/// Adjacent wire frames as one buffer.
pub(crate) struct CutFrames<'a> {
    pub bytes: &'a [u8],
    pub offload: Offload,
    pub wire_frames: u64,
    /// Position in the original buffer; `None` if the frames are the whole buffer.
    pub part: Option<TrainPart>,
}

/// Splits a buffer by wire frame.
#[derive(Debug)]
pub(crate) struct Cutter<'a> {
    bytes: &'a [u8],
    offload: Offload,
    /// Number of the train.
    train: u64,
    lens: Option<WireFrames>,
    wire_frames: usize,
    next: usize,
    run: Option<Run>,
    /// The parsed super-packet, once a frame has been cut from it.
    super_packet: Option<SuperPacket<'a>>,
    /// Scratch memory.
    piece: &'a mut Vec<u8>,
}

/// Bits of a train number that count an input port's trains. Higher bits identify the port.
const TRAIN_BITS: u32 = 32;

/// Allocates an input port's train numbers, which differ from those of other ports.
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

    /// Returns the next train number, which may wrap around: a train that is 2^32 older has left.
    pub fn next(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.port | u64::from(self.next)
    }
}

impl<'a> Cutter<'a> {
    /// Returns a cutter for the train with this number. `piece` is scratch memory.
    pub fn new(
        train: u64,
        bytes: &'a [u8],
        offload: Offload,
        piece: &'a mut Vec<u8>,
    ) -> Cutter<'a> {
        let lens = offload
            .segments
            .map(|segments| segments.wire_frames(bytes.len()));
        Cutter {
            bytes,
            offload,
            train,
            wire_frames: lens.as_ref().map_or(1, ExactSizeIterator::len),
            lens,
            next: 0,
            run: None,
            super_packet: None,
            piece,
        }
    }

    /// Returns the length of the next wire frame.
    pub fn next_wire_len(&mut self) -> Option<u32> {
        match &mut self.lens {
            Some(lens) => lens.next().map(|len| len as u32),
            None => (self.next == 0).then_some(self.bytes.len() as u32),
        }
    }

    /// Returns the next wire frame with complete checksums; `None` if the headers contradict the
    /// segments.
    pub fn next_finished(&mut self) -> Option<&[u8]> {
        if self.offload.segments.is_none() {
            return Some(self.finished());
        }
        let next = self.next..self.next + 1;
        self.super_packet()?.cut(next, self.piece)?;
        Some(self.piece)
    }

    /// Returns the parsed super-packet; `None` if its headers contradict its segments.
    fn super_packet(&mut self) -> Option<SuperPacket<'a>> {
        if self.super_packet.is_none() {
            self.super_packet = SuperPacket::of(self.bytes, self.offload.segments?);
        }
        self.super_packet
    }

    /// Returns the buffer with a complete checksum.
    fn finished(&mut self) -> &[u8] {
        let Some(checksum) = self.offload.checksum else {
            return self.bytes;
        };
        self.piece.clear();
        self.piece.extend_from_slice(self.bytes);
        offload::finish_checksum(self.piece, checksum);
        self.piece
    }

    /// Records the decision on the next wire frame. Returns the run that the decision ends.
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

    /// Returns the last decided frame as a run.
    pub fn last_frame(&self, release: Nanos) -> Run {
        Run {
            release,
            first: self.next - 1,
            end: self.next,
        }
    }

    /// Takes the last run, which no decision has ended.
    pub fn last_run(&mut self) -> Option<Run> {
        self.run.take()
    }

    /// Builds a run's buffers: one for [`CutForm::Trains`], otherwise one per wire frame. Returns
    /// the number of wire frames that could not be built because the headers contradict the
    /// segments.
    #[must_use]
    pub fn cut(&mut self, run: Run, form: CutForm, mut keep: impl FnMut(&CutFrames<'_>)) -> u64 {
        let whole = run.first == 0 && run.end == self.wire_frames;
        if whole && (form == CutForm::Trains || self.offload.segments.is_none()) {
            self.keep_whole(form, keep);
            return 0;
        }
        let Some(segments) = self.offload.segments else {
            return 0;
        };
        let mut unmade = 0;
        let step = match form {
            CutForm::Trains => run.end - run.first,
            CutForm::Unfinished | CutForm::Finished => 1,
        };
        let cut = match form {
            CutForm::Finished => SuperPacket::cut,
            CutForm::Trains | CutForm::Unfinished => SuperPacket::cut_unfinished,
        };
        let mut first = run.first;
        while first < run.end {
            let end = (first + step).min(run.end);
            self.piece.clear();
            let packet = self.super_packet();
            let made = packet.and_then(|packet| cut(&packet, first..end, self.piece));
            match made {
                Some(offload) => keep(&CutFrames {
                    bytes: self.piece,
                    offload,
                    wire_frames: (end - first) as u64,
                    part: self.part(first, segments),
                }),
                None => unmade += (end - first) as u64,
            }
            first = end;
        }
        unmade
    }

    /// Returns the position of wire frame `first`, for joining.
    fn part(&self, first: usize, segments: Segments) -> Option<TrainPart> {
        Some(TrainPart {
            train: self.train,
            index: u16::try_from(first).ok()?,
            segments,
        })
    }

    /// Keeps the buffer unchanged. Completes its checksum unless the port does.
    fn keep_whole(&mut self, form: CutForm, mut keep: impl FnMut(&CutFrames<'_>)) {
        let mut offload = self.offload;
        let wire_frames = self.wire_frames as u64;
        let bytes = if form == CutForm::Finished {
            offload.checksum = None;
            self.finished()
        } else {
            self.bytes
        };
        keep(&CutFrames {
            bytes,
            offload,
            wire_frames,
            part: None,
        });
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
pub mod tests;
