//! Frames inside a network: on paths, waiting for their release, or leaving by several
//! ports.

use longwire_engine::{FrameMeta, Nanos};
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame, Note};
use longwire_io::port::offload::{self, TrainPart};
use longwire_packet::bridge::{Forwarding, PortIndex};

use crate::stage::wire_frames_of;

use super::store::{FrameStore, StoredFrame};

/// A departing frame.
#[derive(Clone, Copy, Debug)]
pub struct OutputFrame<'a> {
    /// The output port.
    pub port: PortIndex,
    /// The release.
    pub release: Nanos,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The wire length in bytes.
    pub wire_len: u32,
}

/// An arriving frame of a batch.
pub(super) enum Arriving<'a> {
    /// The bytes of a frame without a line.
    Bytes(&'a [u8]),
    /// A frame taken off its line.
    Frame(Frame),
}

/// The ports by which a frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// One port.
    One(PortIndex),
    /// Every port except this one.
    AllBut(PortIndex),
}

impl Exit {
    /// Returns the exit of a frame that arrived at `port`; `None` if it is not forwarded.
    #[inline]
    pub fn of(forwarding: Forwarding, port: PortIndex) -> Option<Exit> {
        match forwarding {
            Forwarding::None(_) => None,
            Forwarding::One(port) => Some(Exit::One(port)),
            Forwarding::Flood(_) => Some(Exit::AllBut(port)),
        }
    }

    /// Returns whether this is a single port that is marked in `ports`.
    #[inline]
    pub fn is_one_of(self, ports: &[bool]) -> bool {
        matches!(self, Exit::One(port) if ports.get(usize::from(port.0)) == Some(&true))
    }
}

/// A handle to a frame. Return it with [`Frames::free`].
#[derive(Debug)]
pub(crate) struct Frame {
    place: FramePlace,
    /// Wire length in bytes.
    pub wire_len: u32,
    /// The only output port, or [`ALL_BUT_ENTRY`].
    exit: u16,
    /// The port of arrival.
    pub entry: PortIndex,
    /// The frame's number on its current link, truncated. Valid only if verdicts are
    /// recorded.
    pub number: u32,
}

/// Marks frames that leave by all ports but their port of arrival. No port has this number.
const ALL_BUT_ENTRY: u16 = u16::MAX;

// Millions of handles may be in the release queue and be sorted.
const _: () = assert!(size_of::<Frame>() == 24);

impl Frame {
    #[inline(always)]
    pub fn exit(&self) -> Exit {
        match self.exit {
            ALL_BUT_ENTRY => Exit::AllBut(self.entry),
            port => Exit::One(PortIndex(port)),
        }
    }

    /// Sets the exit. The port of [`Exit::AllBut`] is the frame's port of arrival.
    #[inline(always)]
    pub fn set_exit(&mut self, exit: Exit) {
        self.exit = match exit {
            Exit::One(port) => port.0,
            Exit::AllBut(port) => {
                debug_assert_eq!(port, self.entry);
                ALL_BUT_ENTRY
            }
        };
    }
}

/// Location of a frame's bytes.
#[derive(Debug)]
enum FramePlace {
    /// On its arrival line.
    Line(u16, HeldFrame),
    /// In the store: a frame without an arrival line, a fragment, or a copy made for
    /// writing.
    Stored(StoredFrame),
    /// In the table of reference-counted frames.
    Shared(u32),
}

/// A reference-counted frame.
#[derive(Debug)]
struct SharedFrame {
    /// `None` if the entry is free.
    place: Option<FramePlace>,
    handles: u32,
}

/// Consecutive arrivals on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivalRun {
    pub line: u16,
    /// The first frame's arrival.
    pub first: Nanos,
    /// The latest arrival that precedes all frames on other lines.
    pub until: Nanos,
}

/// The frames of a network and their arrival lines.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    lines: Vec<DelayLineReader>,
    /// Bytes of frames that are on no line.
    pub(super) store: FrameStore,
    /// Stored bytes by port of arrival, if counted.
    pub stored: Vec<u64>,
    shared: Vec<SharedFrame>,
    shared_free: Vec<u32>,
    handles: usize,
    /// Number of wire frames queued or decided in place.
    pub in_place: usize,
    /// Number of wire frames beyond the first in each record of a train that left a line in place.
    joined: u64,
}

impl Frames {
    pub fn new(lines: Vec<DelayLineReader>) -> Frames {
        Frames {
            lines,
            ..Frames::default()
        }
    }

    /// Returns the earliest frames that arrived by `until`, up to the first frame of another line.
    /// Ties go to the lower line.
    #[inline]
    pub fn next_run(&mut self, until: Nanos) -> Option<ArrivalRun> {
        let mut next: Option<ArrivalRun> = None;
        for (line, reader) in self.lines.iter_mut().enumerate() {
            let Some(first) = reader.arrived_at() else {
                continue;
            };
            let until = match &mut next {
                Some(run) if run.first <= first => {
                    run.until = run.until.min(first);
                    continue;
                }
                Some(run) => run.first.saturating_sub(Nanos::from_nanos(1)).min(until),
                None => until,
            };
            let line = line as u16;
            next = Some(ArrivalRun { line, first, until });
        }
        next.filter(|run| run.first <= until)
    }

    /// Takes a line's next frame that arrived by `until`, and completes its checksum, because links
    /// and recorders may read its bytes.
    #[inline(always)]
    pub fn take(&mut self, line: u16, until: Nanos) -> Option<(FrameMeta, Frame)> {
        let (frame, meta) = self.lines[usize::from(line)].take_arrived(until)?;
        // The switch sets the exit next.
        let entry = PortIndex(line);
        let place = FramePlace::Line(line, frame);
        let frame = self.handle(place, meta.len, (Exit::AllBut(entry), entry));
        Some((meta, frame))
    }

    /// Adds a frame without a line. The caller then sets its exit.
    #[inline]
    pub fn bring(&mut self, entry: PortIndex, bytes: &[u8], wire_len: u32) -> Frame {
        self.adopt(bytes, wire_len, (Exit::AllBut(entry), entry), None)
    }

    /// Adds a copy of a frame with its exit, its port of arrival and, if it has one, its
    /// position in a train.
    #[inline(always)]
    pub fn adopt(
        &mut self,
        bytes: &[u8],
        wire_len: u32,
        ports: (Exit, PortIndex),
        part: Option<TrainPart>,
    ) -> Frame {
        let stored = match part {
            None => self.store.insert(bytes),
            Some(part) => self.store.insert_part(bytes, part),
        };
        self.count_stored(ports.1, stored.len());
        self.handle(FramePlace::Stored(stored), wire_len, ports)
    }

    #[inline(always)]
    fn handle(
        &mut self,
        place: FramePlace,
        wire_len: u32,
        (exit, entry): (Exit, PortIndex),
    ) -> Frame {
        self.handles += 1;
        let mut frame = Frame {
            place,
            wire_len,
            exit: ALL_BUT_ENTRY,
            entry,
            number: 0,
        };
        frame.set_exit(exit);
        frame
    }

    /// Returns a frame's position in the train it was cut from.
    pub fn part(&self, frame: &Frame) -> Option<TrainPart> {
        match self.place_of(frame)? {
            FramePlace::Line(line, held) => self.lines[usize::from(*line)].descriptor(held).part(),
            FramePlace::Stored(stored) => self.store.part(stored),
            FramePlace::Shared(_) => None,
        }
    }

    #[inline(always)]
    fn count_stored(&mut self, entry: PortIndex, len: usize) {
        if let Some(stored) = self.stored.get_mut(usize::from(entry.0)) {
            *stored += len as u64;
        }
    }

    /// Removes a frame from the store.
    #[inline(always)]
    fn remove_stored(&mut self, entry: PortIndex, frame: StoredFrame) {
        if let Some(stored) = self.stored.get_mut(usize::from(entry.0)) {
            *stored -= frame.len() as u64;
        }
        self.store.remove(frame);
    }

    /// Returns a frame's bytes.
    #[inline(always)]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        match &frame.place {
            FramePlace::Stored(stored) => self.store.bytes(stored),
            FramePlace::Line(line, held) => self.line_bytes(*line, held),
            FramePlace::Shared(index) => self.shared_bytes(*index),
        }
    }

    #[inline(always)]
    fn line_bytes(&self, line: u16, held: &HeldFrame) -> &[u8] {
        self.lines[usize::from(line)].bytes(held)
    }

    #[cold]
    fn shared_bytes(&self, index: u32) -> &[u8] {
        match &self.shared[index as usize].place {
            Some(FramePlace::Line(line, held)) => self.line_bytes(*line, held),
            Some(FramePlace::Stored(stored)) => self.store.bytes(stored),
            Some(FramePlace::Shared(_)) | None => &[],
        }
    }

    /// Returns a frame's record on its line and its bytes; for a frame on no line, a record without a
    /// release.
    #[inline(always)]
    pub fn record(&self, frame: &Frame) -> (Descriptor, &[u8]) {
        match &frame.place {
            FramePlace::Line(line, held) => self.lines[usize::from(*line)].record(held),
            FramePlace::Stored(_) | FramePlace::Shared(_) => self.record_off_line(frame),
        }
    }

    #[inline(never)]
    fn record_off_line(&self, frame: &Frame) -> (Descriptor, &[u8]) {
        let (bytes, part) = match self.place_of(frame) {
            Some(FramePlace::Line(line, held)) => {
                return self.lines[usize::from(*line)].record(held);
            }
            Some(FramePlace::Stored(stored)) => (self.store.bytes(stored), self.store.part(stored)),
            Some(FramePlace::Shared(_)) | None => (&[][..], None),
        };
        let note = Note {
            release: Nanos::ZERO,
            tag: 0,
            offload: longwire_io::Offload::NONE,
            part,
            wire_len: frame.wire_len,
        };
        (Descriptor::new(bytes.len() as u32, &note), bytes)
    }

    /// Prefetches the bytes of a frame.
    #[inline]
    pub fn prefetch(&self, frame: &Frame) {
        if let FramePlace::Line(line, held) = &frame.place {
            self.lines[usize::from(*line)].prefetch(held);
        }
    }

    /// Returns the location of a frame's bytes, never `Shared`.
    #[inline]
    fn place_of<'a>(&'a self, frame: &'a Frame) -> Option<&'a FramePlace> {
        match &frame.place {
            FramePlace::Shared(index) => self.shared[*index as usize].place.as_ref(),
            place => Some(place),
        }
    }

    /// Edits a frame's bytes, after copying them if they are shared.
    pub fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        if let FramePlace::Shared(index) = frame.place
            && self.shared[index as usize].handles > 1
        {
            let own = self.bytes(frame).to_vec();
            self.shared[index as usize].handles -= 1;
            frame.place = FramePlace::Stored(self.store.insert(&own));
            self.count_stored(frame.entry, own.len());
        }
        let place = match &mut frame.place {
            FramePlace::Shared(index) => self.shared[*index as usize].place.as_mut(),
            place => Some(place),
        };
        match place {
            Some(FramePlace::Line(line, held)) => {
                edit(self.lines[usize::from(*line)].bytes_mut(held));
            }
            Some(FramePlace::Stored(stored)) => {
                edit(self.store.bytes_mut(stored));
            }
            Some(FramePlace::Shared(_)) | None => {}
        }
    }

    /// Returns another handle to the same frame.
    pub fn copy(&mut self, frame: &mut Frame) -> Frame {
        let index = self.share(frame);
        self.shared[index as usize].handles += 1;
        self.handles += 1;
        Frame {
            place: FramePlace::Shared(index),
            ..*frame
        }
    }

    /// Moves a frame to the table of reference-counted frames and returns its index.
    fn share(&mut self, frame: &mut Frame) -> u32 {
        if let FramePlace::Shared(index) = frame.place {
            return index;
        }
        let index = self.shared_free.pop().unwrap_or_else(|| {
            self.shared.push(SharedFrame {
                place: None,
                handles: 0,
            });
            self.shared.len() as u32 - 1
        });
        let place = std::mem::replace(&mut frame.place, FramePlace::Shared(index));
        self.shared[index as usize] = SharedFrame {
            place: Some(place),
            handles: 1,
        };
        index
    }

    /// Creates a frame from `bytes` that leaves by the port at which `to` arrived.
    pub fn reply(&mut self, to: &Frame, bytes: &[u8]) -> Frame {
        let ports = (Exit::One(to.entry), to.entry);
        self.adopt(bytes, bytes.len() as u32, ports, None)
    }

    /// Creates a frame from `bytes` with the exit of `like`.
    pub fn make(&mut self, like: &Frame, bytes: &[u8]) -> Frame {
        Frame {
            number: like.number,
            ..self.adopt(bytes, bytes.len() as u32, (like.exit(), like.entry), None)
        }
    }

    /// Releases a handle.
    #[inline(always)]
    pub fn free(&mut self, frame: Frame) {
        self.handles -= 1;
        match frame.place {
            FramePlace::Line(line, held) => self.lines[usize::from(line)].free(held),
            FramePlace::Stored(stored) => self.remove_stored(frame.entry, stored),
            FramePlace::Shared(index) => self.free_shared(frame.entry, index),
        }
    }

    #[cold]
    fn free_shared(&mut self, entry: PortIndex, index: u32) {
        let shared = &mut self.shared[index as usize];
        shared.handles -= 1;
        if shared.handles > 0 {
            return;
        }
        self.shared_free.push(index);
        match shared.place.take() {
            Some(FramePlace::Line(line, held)) => self.lines[usize::from(line)].free(held),
            Some(FramePlace::Stored(stored)) => self.remove_stored(entry, stored),
            Some(FramePlace::Shared(_)) | None => {}
        }
    }

    /// Returns memory to the writers of the lines.
    pub fn settle(&mut self) {
        self.lines.iter_mut().for_each(DelayLineReader::settle);
    }

    /// Returns the number of frames, counting each copy.
    pub fn len(&self) -> usize {
        self.handles + self.in_place
    }

    /// Returns the number of frames taken off the lines or decided in place since the
    /// start.
    pub fn taken(&self) -> u64 {
        let consumed: u64 = self.lines.iter().map(DelayLineReader::consumed).sum();
        consumed + self.joined + self.in_place as u64
    }

    /// Returns whether all lines are empty.
    pub fn lines_are_empty(&mut self) -> bool {
        self.lines.iter_mut().all(DelayLineReader::is_empty)
    }

    /// Returns the line of an input port.
    #[inline]
    pub fn line(&mut self, line: usize) -> &mut DelayLineReader {
        &mut self.lines[line]
    }

    /// Returns an input port's line for in-place decisions, and [`Frames::in_place`], which the
    /// caller maintains.
    #[inline]
    pub fn line_in_place(&mut self, line: usize) -> (&mut DelayLineReader, &mut usize) {
        (&mut self.lines[line], &mut self.in_place)
    }

    /// Returns the earliest release among frames decided in place.
    pub fn next_release(&mut self) -> Option<Nanos> {
        let decided = self.lines.iter_mut().filter_map(|line| line.decided());
        decided.map(|next| next.release()).min()
    }

    /// Returns the number of lines.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Takes the oldest frame queued in place off its line.
    pub fn take_queued(&mut self, line: usize, exit: Exit) -> Option<Frame> {
        let held = self.lines[line].take_queued()?;
        Some(self.off_its_line(line, held, exit))
    }

    /// Takes the first frame decided in place off its line, or all wire frames of a train,
    /// and returns them with their release.
    pub fn take_decided(&mut self, line: usize, exit: Exit) -> Option<(Vec<Frame>, Nanos)> {
        let next = self.lines[line].decided()?;
        let Some(segments) = next.offload().segments else {
            let held = self.lines[line].take()?;
            return Some((vec![self.off_its_line(line, held, exit)], next.release()));
        };
        let train = self.lines[line].front_bytes().to_vec();
        let mut cut = Vec::new();
        let frames = (0..wire_frames_of(&next).0 as usize).filter_map(|index| {
            offload::cut(&train, segments, index..index + 1, &mut cut)?;
            // A part that keeps its train's number can be joined again. A whole train has
            // no number.
            let part = next.part().map(|part| TrainPart {
                index: part.index + index as u16,
                ..part
            });
            let ports = (exit, PortIndex(line as u16));
            Some(self.adopt(&cut, cut.len() as u32, ports, part))
        });
        let frames = frames.collect();
        self.pass_decided(line, &next);
        Some((frames, next.release()))
    }

    /// Skips `next`, the first record decided in place. Returns the number of its wire
    /// frames.
    #[inline]
    pub fn pass_decided(&mut self, line: usize, next: &Descriptor) -> u64 {
        let frames = wire_frames_of(next).0;
        self.lines[line].advance();
        self.in_place -= frames as usize;
        self.joined += u64::from(frames) - 1;
        u64::from(frames)
    }

    fn off_its_line(&mut self, line: usize, mut held: HeldFrame, exit: Exit) -> Frame {
        self.in_place -= 1;
        let wire_len = self.lines[line].descriptor(&held).wire_len();
        self.lines[line].finish_checksum(&mut held);
        let entry = PortIndex(line as u16);
        let place = FramePlace::Line(line as u16, held);
        self.handle(place, wire_len, (exit, entry))
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::Bytes;
    use longwire_io::delay_line::{DelayLineConfig, delay_line};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Runs are in order of arrival, then of lines, up to the chosen time.
        #[test]
        fn runs_are_in_order(
            lines in prop::collection::vec(prop::collection::vec(0_u64..20, 0..12), 0..5),
            until in 0_u64..20,
        ) {
            let mut readers = Vec::new();
            let mut expected = Vec::new();
            for (line, gaps) in lines.iter().enumerate() {
                let config = DelayLineConfig { budget: Bytes(1 << 20), huge_pages: false };
                let (mut writer, reader) = delay_line(&config).expect("memory");
                let mut arrival = 0;
                for gap in gaps {
                    // Every other frame arrives together with its predecessor.
                    arrival += gap.saturating_sub(10);
                    let note = Note {
                        release: Nanos::from_nanos(arrival),
                        tag: 0,
                        offload: longwire_io::Offload::NONE,
                        part: None,
                        wire_len: 1,
                    };
                    writer.push(&[line as u8], note).expect("room");
                    expected.push((arrival, line as u16));
                }
                writer.publish();
                readers.push(reader);
            }
            expected.retain(|(arrival, _)| *arrival <= until);
            expected.sort_unstable();
            let mut frames = Frames::new(readers);
            let mut taken = Vec::new();
            while let Some(run) = frames.next_run(Nanos::from_nanos(until)) {
                while let Some((meta, frame)) = frames.take(run.line, run.until) {
                    taken.push((meta.arrival.as_nanos(), run.line));
                    frames.free(frame);
                }
            }
            prop_assert_eq!(taken, expected);
        }
    }
}
