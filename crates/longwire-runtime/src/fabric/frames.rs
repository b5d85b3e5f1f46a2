//! Frames inside a fabric: on paths, waiting for their release, leaving by
//! several ports at once.

use longwire_engine::Nanos;
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame};
use longwire_io::port::offload::TrainPart;
use longwire_packet::bridge::PortIndex;

use super::store::{FrameLocation, FrameStore};

/// The ports by which a frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// One port.
    One(PortIndex),
    /// All ports but this one.
    AllBut(PortIndex),
}

/// A handle of a frame. Each must be returned with [`Frames::free`].
#[derive(Debug)]
pub(super) struct Frame {
    slot: u32,
    pub exit: Exit,
    /// The frame's number on its current link, truncated, if verdicts are
    /// recorded.
    pub number: u32,
}

/// The location of a frame's bytes.
#[derive(Debug)]
enum FrameStorage {
    /// On the line by which it arrived.
    Line(u16, HeldFrame),
    /// In a store: a frame that arrived on no line, a fragment, or bytes that
    /// were changed while another handle referred to the same frame.
    Stored(usize, FrameLocation),
    /// In the first store: a frame that was cut from a train, unchanged.
    StoredPart(FrameLocation, TrainPart),
    /// Nowhere: the slot is free.
    Free,
}

/// A frame and the number of its handles.
#[derive(Debug)]
struct FrameSlot {
    place: FrameStorage,
    handles: u32,
    wire_len: u32,
}

/// The frames of a fabric and the lines by which they arrived.
#[derive(Debug)]
pub(super) struct Frames {
    lines: Vec<DelayLineReader>,
    /// The bytes of frames that are on no line.
    stores: Vec<FrameStore>,
    slots: Vec<FrameSlot>,
    free: Vec<u32>,
    /// Number of handles.
    handles: usize,
    /// Number of frames that are queued or decided in place, on their lines.
    pub in_place: usize,
}

impl Frames {
    pub fn new(lines: Vec<DelayLineReader>) -> Frames {
        Frames {
            lines,
            stores: vec![FrameStore::new()],
            slots: Vec::new(),
            free: Vec::new(),
            handles: 0,
            in_place: 0,
        }
    }

    /// Returns the line whose next frame arrived first, if it arrived by
    /// `until`, and the arrival. Among frames of one time, lines of lower
    /// numbers go first.
    #[inline]
    pub fn next_arrival(&mut self, until: Nanos) -> Option<(u16, Nanos)> {
        let mut next: Option<(u16, Nanos)> = None;
        for (line, reader) in self.lines.iter_mut().enumerate() {
            let Some(arrived) = reader.arrived() else {
                continue;
            };
            if next.is_none_or(|(_, arrival)| arrived.release < arrival) {
                next = Some((line as u16, arrived.release));
            }
        }
        next.filter(|(_, arrival)| *arrival <= until)
    }

    /// Takes the next frame off a line.
    #[inline]
    pub fn take(&mut self, line: u16) -> Option<(Frame, u32)> {
        let frame = self.lines[line as usize].take_arrived()?;
        let wire_len = frame.descriptor().wire_len;
        let slot = self.put(FrameStorage::Line(line, frame), wire_len);
        // The switch decides the exit next.
        let exit = Exit::AllBut(PortIndex(line));
        let frame = Frame {
            slot,
            exit,
            number: 0,
        };
        Some((frame, wire_len))
    }

    /// Adds a frame that arrived on no line to a store. Its exit is decided next.
    #[inline]
    pub fn bring(&mut self, store: usize, bytes: &[u8], wire_len: u32) -> Frame {
        let place = FrameStorage::Stored(store, self.stores[store].insert(bytes));
        Frame {
            slot: self.put(place, wire_len),
            exit: Exit::AllBut(PortIndex(0)),
            number: 0,
        }
    }

    /// Adds a copy of a frame that has an exit and perhaps a place in a train.
    #[inline]
    pub fn adopt(
        &mut self,
        bytes: &[u8],
        wire_len: u32,
        exit: Exit,
        part: Option<TrainPart>,
    ) -> Frame {
        let place = self.stores[0].insert(bytes);
        let place = match part {
            None => FrameStorage::Stored(0, place),
            Some(part) => FrameStorage::StoredPart(place, part),
        };
        Frame {
            slot: self.put(place, wire_len),
            exit,
            number: 0,
        }
    }

    /// Returns a frame's place in the train from which it was cut.
    pub fn part(&self, frame: &Frame) -> Option<TrainPart> {
        match &self.slots[frame.slot as usize].place {
            FrameStorage::Line(_, held) => held.descriptor().part,
            FrameStorage::StoredPart(_, part) => Some(*part),
            FrameStorage::Stored(..) | FrameStorage::Free => None,
        }
    }

    /// Returns the memory of the stores, in bytes.
    pub fn memory(&self) -> u64 {
        self.stores.iter().map(FrameStore::memory).sum()
    }

    /// Returns a frame's bytes.
    #[inline]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        match &self.slots[frame.slot as usize].place {
            FrameStorage::Line(line, held) => self.lines[*line as usize].bytes(held),
            FrameStorage::Stored(store, place) => self.stores[*store].get(*place),
            FrameStorage::StoredPart(place, _) => self.stores[0].get(*place),
            FrameStorage::Free => &[],
        }
    }

    /// Returns a frame's length on the wire, in bytes.
    pub fn wire_len(&self, frame: &Frame) -> u32 {
        self.slots[frame.slot as usize].wire_len
    }

    /// Returns the description of a frame for an output port's account.
    pub fn descriptor(&self, frame: &Frame, release: Nanos) -> Descriptor {
        let slot = &self.slots[frame.slot as usize];
        Descriptor {
            release,
            link: longwire_engine::LinkId(0),
            len: self.bytes(frame).len() as u32,
            offload: longwire_io::Offload::NONE,
            part: self.part(frame),
            lent: None,
            wire_len: slot.wire_len,
        }
    }

    /// Changes a frame's bytes, after copying them if they are shared.
    pub fn edit(&mut self, frame: &mut Frame, edit: &mut dyn FnMut(&mut [u8])) {
        if self.slots[frame.slot as usize].handles > 1 {
            let own = self.bytes(frame).to_vec();
            let shared = &mut self.slots[frame.slot as usize];
            shared.handles -= 1;
            self.handles -= 1;
            let wire_len = shared.wire_len;
            frame.slot = self.bring(0, &own, wire_len).slot;
        }
        match &mut self.slots[frame.slot as usize].place {
            FrameStorage::Line(line, held) => edit(self.lines[*line as usize].bytes_mut(held)),
            FrameStorage::Stored(store, place) => edit(self.stores[*store].get_mut(*place)),
            FrameStorage::StoredPart(place, _) => edit(self.stores[0].get_mut(*place)),
            FrameStorage::Free => {}
        }
    }

    /// Makes another handle of the same frame.
    pub fn copy(&mut self, frame: &Frame) -> Frame {
        self.slots[frame.slot as usize].handles += 1;
        self.handles += 1;
        Frame { ..*frame }
    }

    /// Makes a frame of these bytes with the exit of another.
    pub fn make(&mut self, like: &Frame, bytes: &[u8]) -> Frame {
        let made = self.bring(0, bytes, bytes.len() as u32);
        Frame {
            slot: made.slot,
            ..*like
        }
    }

    /// Returns a handle.
    #[inline]
    pub fn free(&mut self, frame: Frame) {
        let slot = &mut self.slots[frame.slot as usize];
        slot.handles -= 1;
        self.handles -= 1;
        if slot.handles > 0 {
            return;
        }
        match std::mem::replace(&mut slot.place, FrameStorage::Free) {
            FrameStorage::Line(line, held) => self.lines[line as usize].free(held),
            FrameStorage::Stored(store, place) => self.stores[store].remove(place),
            FrameStorage::StoredPart(place, _) => self.stores[0].remove(place),
            FrameStorage::Free => {}
        }
        self.free.push(frame.slot);
    }

    /// Returns memory to the threads that fill the lines.
    pub fn settle(&mut self) {
        self.lines.iter_mut().for_each(DelayLineReader::settle);
    }

    /// Returns the number of frames; a copy counts, too.
    pub fn len(&self) -> usize {
        self.handles + self.in_place
    }

    /// Returns the number of frames that have come off the lines or are decided on them,
    /// since the start.
    pub fn taken(&self) -> u64 {
        let consumed: u64 = self.lines.iter().map(DelayLineReader::consumed).sum();
        consumed + self.in_place as u64
    }

    /// Whether all lines are empty.
    pub fn lines_are_empty(&mut self) -> bool {
        self.lines.iter_mut().all(DelayLineReader::is_empty)
    }

    /// Returns the line of an input port.
    #[inline]
    pub fn line(&mut self, line: usize) -> &mut DelayLineReader {
        &mut self.lines[line]
    }

    /// Returns the line of an input port, to decide its frames in place, and the number
    /// of all such frames, which the caller keeps.
    #[inline]
    pub fn line_in_place(&mut self, line: usize) -> (&mut DelayLineReader, &mut usize) {
        (&mut self.lines[line], &mut self.in_place)
    }

    /// Returns the first release of the frames that were decided in place.
    pub fn next_release(&mut self) -> Option<Nanos> {
        let decided = self.lines.iter_mut().filter_map(|line| line.decided());
        decided.map(|next| next.release).min()
    }

    /// Returns the number of lines.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Takes the frame that has been queued longest in place off its line.
    pub fn take_queued(&mut self, line: usize, exit: Exit) -> Option<(Frame, u32)> {
        let frame = self.lines[line].take_queued()?;
        let wire_len = frame.descriptor().wire_len;
        Some((self.put_in_slot(line, frame, exit), wire_len))
    }

    /// Takes the first frame that was decided in place off its line; also
    /// returns its release.
    pub fn take_decided(&mut self, line: usize, exit: Exit) -> Option<(Frame, Nanos)> {
        let release = self.lines[line].decided()?.release;
        let frame = self.lines[line].take()?;
        Some((self.put_in_slot(line, frame, exit), release))
    }

    fn put_in_slot(&mut self, line: usize, frame: HeldFrame, exit: Exit) -> Frame {
        self.in_place -= 1;
        let wire_len = frame.descriptor().wire_len;
        Frame {
            slot: self.put(FrameStorage::Line(line as u16, frame), wire_len),
            exit,
            number: 0,
        }
    }

    #[inline]
    fn put(&mut self, place: FrameStorage, wire_len: u32) -> u32 {
        let slot = FrameSlot {
            place,
            handles: 1,
            wire_len,
        };
        self.handles += 1;
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }
}
