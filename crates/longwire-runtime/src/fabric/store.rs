//! Storage for frames that wait for their release.
//!
//! Frames are appended to segments, so they are mostly read sequentially; a segment is
//! reused when its last frame is removed. Memory is proportional to the frames in flight,
//! and a delayed frame pins only its own segment.

use longwire_io::port::offload::TrainPart;

/// Segment size in bytes; a longer frame gets a segment of its length.
const SEGMENT_LEN: usize = 256 * 1024;

/// Maximum number of empty segments kept for reuse.
const SPARE_MAX: usize = 16;

/// The location of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLocation {
    segment: u32,
    at: u32,
    len: u32,
}

/// The location of a frame with a header.
#[derive(Debug)]
pub(super) struct StoredFrame {
    segment: u32,
    at: u32,
}

/// Header of a frame in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredHead {
    /// Number of stored bytes.
    pub len: u32,
    pub wire_len: u32,
    /// Position in the train it was cut from.
    pub part: Option<TrainPart>,
}

/// Header length without a part.
const HEAD_LEN: usize = 8;

/// Length of a part, which follows the header.
const PART_LEN: usize = 16;

/// Flag in the stored length: a part follows the header.
const WITH_PART: u32 = 1 << 31;

#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    /// Number of frames not yet removed.
    live: u32,
}

/// The bytes of many frames.
#[derive(Debug)]
pub(super) struct FrameStore {
    segments: Vec<Segment>,
    /// Index of the segment being filled.
    current: u32,
    /// Empty segments with memory; `vacant` has those without.
    spare: Vec<u32>,
    vacant: Vec<u32>,
    memory: u64,
    memory_max: u64,
}

impl FrameStore {
    pub fn new() -> FrameStore {
        let mut store = FrameStore {
            segments: Vec::new(),
            current: 0,
            spare: Vec::new(),
            vacant: Vec::new(),
            memory: 0,
            memory_max: 0,
        };
        store.current = store.open(SEGMENT_LEN);
        store
    }

    /// Stores a copy of a frame.
    #[inline]
    pub fn insert(&mut self, frame: &[u8]) -> FrameLocation {
        self.make_space(frame.len());
        let segment = &mut self.segments[self.current as usize];
        let at = segment.bytes.len();
        segment.bytes.extend_from_slice(frame);
        segment.live += 1;
        FrameLocation {
            segment: self.current,
            at: at as u32,
            len: frame.len() as u32,
        }
    }

    #[inline]
    pub fn get(&self, place: FrameLocation) -> &[u8] {
        let at = place.at as usize;
        &self.segments[place.segment as usize].bytes[at..at + place.len as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, place: FrameLocation) -> &mut [u8] {
        let at = place.at as usize;
        &mut self.segments[place.segment as usize].bytes[at..at + place.len as usize]
    }

    /// Stores a copy of a frame with a header; `head.len` must be the frame's length.
    #[inline]
    pub fn insert_with_head(&mut self, head: &StoredHead, frame: &[u8]) -> StoredFrame {
        let part_len = if head.part.is_some() { PART_LEN } else { 0 };
        self.make_space(HEAD_LEN + part_len + frame.len());
        let segment = &mut self.segments[self.current as usize];
        let at = segment.bytes.len() as u32;
        let flag = if head.part.is_some() { WITH_PART } else { 0 };
        let words = u64::from(head.len | flag) | u64::from(head.wire_len) << 32;
        segment.bytes.extend_from_slice(&words.to_le_bytes());
        for word in head.part.iter().flat_map(|part| part.to_words()) {
            segment.bytes.extend_from_slice(&word.to_le_bytes());
        }
        segment.bytes.extend_from_slice(frame);
        segment.live += 1;
        StoredFrame {
            segment: self.current,
            at,
        }
    }

    /// Returns a frame's header.
    #[inline]
    pub fn head(&self, place: &StoredFrame) -> StoredHead {
        split_head(self.record(place)).0
    }

    /// Returns the wire length of a frame with a header.
    #[inline]
    pub fn wire_len(&self, place: &StoredFrame) -> u32 {
        (word_at(self.record(place), 0) >> 32) as u32
    }

    /// Returns the bytes of a frame with a header, without reading its part.
    #[inline]
    pub fn bytes(&self, place: &StoredFrame) -> &[u8] {
        let bytes = self.record(place);
        let head = word_at(bytes, 0) as u32;
        let start = match head & WITH_PART {
            0 => HEAD_LEN,
            _ => HEAD_LEN + PART_LEN,
        };
        &bytes[start..start + (head & !WITH_PART) as usize]
    }

    /// Returns the segment from a frame's header on.
    #[inline]
    fn record(&self, place: &StoredFrame) -> &[u8] {
        &self.segments[place.segment as usize].bytes[place.at as usize..]
    }

    /// Returns a frame's bytes for editing, and removes it from its train.
    pub fn get_mut_with_head(&mut self, place: &StoredFrame) -> &mut [u8] {
        let bytes = &mut self.segments[place.segment as usize].bytes[place.at as usize..];
        let (head, _) = split_head(bytes);
        if head.part.is_none() {
            return &mut bytes[HEAD_LEN..HEAD_LEN + head.len as usize];
        }
        bytes[HEAD_LEN..HEAD_LEN + PART_LEN].fill(u8::MAX);
        &mut bytes[HEAD_LEN + PART_LEN..][..head.len as usize]
    }

    /// Removes a frame with a header.
    #[inline]
    pub fn remove_with_head(&mut self, place: &StoredFrame) {
        self.remove_from(place.segment);
    }

    /// Adds a reference for a duplicate.
    pub fn share(&mut self, place: FrameLocation) {
        self.segments[place.segment as usize].live += 1;
    }

    /// Drops a reference; after the last one the location is invalid.
    #[inline]
    pub fn remove(&mut self, place: FrameLocation) {
        self.remove_from(place.segment);
    }

    #[inline]
    fn remove_from(&mut self, index: u32) {
        let segment = &mut self.segments[index as usize];
        segment.live -= 1;
        if segment.live == 0 {
            segment.bytes.clear();
            if index != self.current {
                self.close(index);
            }
        }
    }

    /// Makes space for `len` bytes in the current segment.
    #[inline]
    fn make_space(&mut self, len: usize) {
        let segment = &self.segments[self.current as usize];
        if segment.bytes.capacity() - segment.bytes.len() < len {
            self.turn(len);
        }
    }

    /// Returns the memory in use, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the peak memory, in bytes.
    pub fn memory_max(&self) -> u64 {
        self.memory_max
    }

    /// Switches to a segment with space for a frame of `len` bytes.
    #[cold]
    fn turn(&mut self, len: usize) {
        let left = self.current;
        self.current = self.open(len.max(SEGMENT_LEN));
        if self.segments[left as usize].live == 0 {
            self.close(left);
        }
    }

    /// Returns an empty segment of at least `len` bytes.
    fn open(&mut self, len: usize) -> u32 {
        if len <= SEGMENT_LEN
            && let Some(spare) = self.spare.pop()
        {
            return spare;
        }
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.segments.push(Segment::default());
            self.segments.len() as u32 - 1
        });
        let bytes = Vec::with_capacity(len);
        self.memory += bytes.capacity() as u64;
        self.memory_max = self.memory_max.max(self.memory);
        self.segments[index as usize].bytes = bytes;
        index
    }

    /// Keeps an empty segment for reuse, or frees its memory.
    fn close(&mut self, index: u32) {
        let segment = &mut self.segments[index as usize];
        segment.bytes.clear();
        if self.spare.len() < SPARE_MAX && segment.bytes.capacity() == SEGMENT_LEN {
            self.spare.push(index);
            return;
        }
        self.memory -= segment.bytes.capacity() as u64;
        segment.bytes = Vec::new();
        self.vacant.push(index);
    }
}

/// Returns a word of a header.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(<[u8]>::first_chunk::<8>);
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Splits `bytes` into the header and the rest.
#[inline]
fn split_head(bytes: &[u8]) -> (StoredHead, &[u8]) {
    let word = |at| word_at(bytes, at);
    let head = word(0);
    let has_part = head as u32 & WITH_PART != 0;
    let rest = if has_part {
        HEAD_LEN + PART_LEN
    } else {
        HEAD_LEN
    };
    let part = has_part.then(|| [word(HEAD_LEN), word(HEAD_LEN + 8)]);
    let head = StoredHead {
        len: head as u32 & !WITH_PART,
        wire_len: (head >> 32) as u32,
        // An edited frame has no valid part.
        part: part.and_then(TrainPart::from_words),
    };
    (head, &bytes[rest..])
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Returns a frame with contents derived from its number.
    fn frame(number: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|at| (number * 31 + at) as u8).collect()
    }

    #[test]
    fn frames_are_unchanged_in_any_order_of_removal() {
        let mut store = FrameStore::new();
        let mut held: VecDeque<(FrameLocation, Vec<u8>)> = VecDeque::new();
        let mut state = 1u64;
        for number in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bytes = frame(number, (state >> 33) as usize % 2_000);
            let place = store.insert(&bytes);
            if state >> 60 == 0 {
                store.remove(place);
                continue;
            }
            held.push_back((place, bytes));
            if held.len() > 1_000 {
                // Mostly the oldest, sometimes out of order.
                let index = if state >> 62 == 0 { 500 } else { 0 };
                if let Some((place, bytes)) = held.remove(index) {
                    assert_eq!(store.get(place), bytes);
                    store.remove(place);
                }
            }
        }
        for (place, bytes) in held {
            assert_eq!(store.get(place), bytes);
            store.remove(place);
        }
    }

    #[test]
    fn memory_follows_the_frames_in_flight() {
        let mut store = FrameStore::new();
        for number in 0..100_000 {
            let place = store.insert(&frame(number, 1_500));
            store.remove(place);
        }
        assert_eq!(store.memory_max(), SEGMENT_LEN as u64);
        let places: Vec<FrameLocation> = (0..10_000)
            .map(|n| store.insert(&frame(n, 1_500)))
            .collect();
        assert!(store.memory_max() > 15_000_000);
        for place in places {
            store.remove(place);
        }
        assert!(store.memory <= (SEGMENT_LEN * (SPARE_MAX + 1)) as u64);
    }

    #[test]
    fn a_header_precedes_the_bytes_with_and_without_a_part() {
        let mut store = FrameStore::new();
        let part = TrainPart::from_words([7, 3 << 32 | 42 << 16 | 500]);
        assert!(part.is_some());
        for (number, part) in [None, part, None].into_iter().enumerate() {
            let bytes = frame(number as u64, 60 + number);
            let head = StoredHead {
                len: bytes.len() as u32,
                wire_len: 1_000 + number as u32,
                part,
            };
            let place = store.insert_with_head(&head, &bytes);
            assert_eq!(store.head(&place), head);
            assert_eq!(store.wire_len(&place), head.wire_len);
            assert_eq!(store.bytes(&place), bytes);
        }
    }

    #[test]
    fn a_frame_longer_than_a_segment_has_its_own() {
        let mut store = FrameStore::new();
        let long = frame(7, SEGMENT_LEN + 1);
        let place = store.insert(&long);
        let empty = store.insert(&[]);
        assert_eq!(store.get(place), long);
        assert_eq!(store.get(empty), [0u8; 0]);
        store.remove(place);
        store.remove(empty);
    }
}
