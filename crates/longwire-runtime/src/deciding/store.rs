//! Storage for frames until their release.
//!
//! Frames are appended to segments, so they are mostly read sequentially. A segment is
//! reused once its last frame is removed. Memory is proportional to the number of frames in
//! flight, and a delayed frame pins only its own segment.

use longwire_io::port::offload::TrainPart;

/// Segment size in bytes. A longer frame gets a segment of its length.
const SEGMENT_LEN: usize = 256 * 1024;

/// Maximum number of empty segments kept for reuse.
const SPARE_MAX: usize = 16;

/// Stored length of a position in a train.
const PART_LEN: usize = 16;

/// The location of a frame. Handles are small, because millions of them may be queued and sorted.
#[derive(Debug)]
pub(super) struct StoredFrame {
    /// Length, [`WITH_PART`], offset and segment, from the low bits up. Two words, for an
    /// alignment of four bytes.
    words: [u32; 2],
}

const LEN_BITS: u32 = 24;
/// Flag: the frame's position in its train follows the bytes.
const WITH_PART: u64 = 1 << LEN_BITS;
const AT_SHIFT: u32 = LEN_BITS + 1;
/// Bits of an offset. Only a segment's first frame may extend beyond [`SEGMENT_LEN`].
const AT_BITS: u32 = SEGMENT_LEN.ilog2() + 1;
const SEGMENT_SHIFT: u32 = AT_SHIFT + AT_BITS;
/// Maximum number of segments, together 256 GiB.
const SEGMENTS_MAX: usize = 1 << (u64::BITS - SEGMENT_SHIFT);

impl StoredFrame {
    #[inline(always)]
    fn of_word(word: u64) -> StoredFrame {
        StoredFrame {
            words: [word as u32, (word >> 32) as u32],
        }
    }

    #[inline(always)]
    fn new(segment: u32, at: usize, len: usize) -> StoredFrame {
        let place = u64::from(segment) << SEGMENT_SHIFT | (at as u64) << AT_SHIFT;
        StoredFrame::of_word(place | len as u64)
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        u64::from(self.words[0]) | u64::from(self.words[1]) << 32
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.word() & (WITH_PART - 1)) as usize
    }

    #[inline(always)]
    fn at(&self) -> usize {
        (self.word() >> AT_SHIFT) as usize & ((1 << AT_BITS) - 1)
    }

    #[inline(always)]
    fn segment(&self) -> usize {
        (self.word() >> SEGMENT_SHIFT) as usize
    }
}

#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    /// Number of frames not yet removed.
    live: u32,
}

impl Segment {
    /// Returns the number of bytes that still fit.
    #[inline]
    fn space(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }
}

/// The bytes of many frames.
#[derive(Debug)]
pub(super) struct FrameStore {
    segments: Vec<Segment>,
    /// Index of the segment being filled.
    current: u32,
    /// Empty segments with memory. Those without are in `vacant`.
    spare: Vec<u32>,
    vacant: Vec<u32>,
    memory: u64,
}

impl Default for FrameStore {
    fn default() -> FrameStore {
        let mut store = FrameStore {
            segments: Vec::new(),
            current: 0,
            spare: Vec::new(),
            vacant: Vec::new(),
            memory: 0,
        };
        store.current = store.open(SEGMENT_LEN);
        store
    }
}

impl FrameStore {
    /// Stores a copy of a frame.
    #[inline(always)]
    pub fn insert(&mut self, frame: &[u8]) -> StoredFrame {
        let segment = &self.segments[self.current as usize];
        // Not filled to the end: a full segment's next offset may exceed `AT_BITS`.
        if segment.space() <= frame.len() {
            self.turn(frame.len());
        }
        self.append(frame)
    }

    #[inline(always)]
    fn append(&mut self, frame: &[u8]) -> StoredFrame {
        let segment = &mut self.segments[self.current as usize];
        let at = segment.bytes.len();
        segment.bytes.extend_from_slice(frame);
        segment.live += 1;
        StoredFrame::new(self.current, at, frame.len())
    }

    /// Stores a copy of a frame with its position in the train it was cut from.
    pub fn insert_part(&mut self, frame: &[u8], part: TrainPart) -> StoredFrame {
        let len = frame.len() + PART_LEN;
        if self.segments[self.current as usize].space() <= len {
            self.turn(len);
        }
        let stored = self.append(frame);
        let segment = &mut self.segments[stored.segment()];
        for word in part.to_words() {
            segment.bytes.extend_from_slice(&word.to_le_bytes());
        }
        StoredFrame::of_word(stored.word() | WITH_PART)
    }

    /// Returns a frame's bytes.
    #[inline]
    pub fn bytes(&self, place: &StoredFrame) -> &[u8] {
        &self.segments[place.segment()].bytes[place.at()..][..place.len()]
    }

    /// Returns a frame's bytes for editing, and removes the frame from its train.
    pub fn bytes_mut(&mut self, place: &mut StoredFrame) -> &mut [u8] {
        *place = StoredFrame::of_word(place.word() & !WITH_PART);
        &mut self.segments[place.segment()].bytes[place.at()..][..place.len()]
    }

    /// Returns a frame's position in the train it was cut from.
    pub fn part(&self, place: &StoredFrame) -> Option<TrainPart> {
        if place.word() & WITH_PART == 0 {
            return None;
        }
        let end = place.at() + place.len();
        let part = &self.segments[place.segment()].bytes[end..end + PART_LEN];
        let (words, _) = part.as_chunks();
        TrainPart::from_words([0, 1].map(|word| u64::from_le_bytes(words[word])))
    }

    /// Removes a frame.
    #[inline]
    pub fn remove(&mut self, place: StoredFrame) {
        let index = place.segment();
        let segment = &mut self.segments[index];
        segment.live -= 1;
        if segment.live == 0 {
            segment.bytes.clear();
            if index != self.current as usize {
                self.close(index as u32);
            }
        }
    }

    /// Returns the allocated memory in bytes, including empty segments.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the memory in bytes of segments with frames, without the unfilled part of the
    /// current segment.
    pub fn held(&self) -> u64 {
        let spare = self.spare.len() * SEGMENT_LEN;
        let unfilled = self.segments[self.current as usize].space();
        self.memory - (spare + unfilled) as u64
    }

    /// Frees the memory of empty segments, except the current one.
    pub fn trim(&mut self) {
        for index in std::mem::take(&mut self.spare) {
            self.free(index);
        }
    }

    /// Switches to a segment with space for a frame of `len` bytes.
    ///
    /// # Panics
    /// If the frame or the store is longer than a [`StoredFrame`] can express.
    #[cold]
    fn turn(&mut self, len: usize) {
        assert!((len as u64) < WITH_PART, "a frame of {len} bytes");
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
            assert!(self.segments.len() < SEGMENTS_MAX, "the store is full");
            self.segments.push(Segment::default());
            self.segments.len() as u32 - 1
        });
        let bytes = Vec::with_capacity(len);
        self.memory += bytes.capacity() as u64;
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
        self.free(index);
    }

    /// Frees the memory of an empty segment.
    fn free(&mut self, index: u32) {
        let segment = &mut self.segments[index as usize];
        self.memory -= segment.bytes.capacity() as u64;
        segment.bytes = Vec::new();
        self.vacant.push(index);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Returns a frame with contents derived from its number.
    fn frame(number: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|at| (number * 31 + at) as u8).collect()
    }

    fn part() -> Option<TrainPart> {
        let part = TrainPart::from_words([7, 3 << 32 | 42 << 16 | 500]);
        assert!(part.is_some());
        part
    }

    #[test]
    fn frames_are_unchanged_in_any_order_of_removal() {
        let mut store = FrameStore::default();
        let mut held: VecDeque<(StoredFrame, Vec<u8>)> = VecDeque::new();
        let mut state = 1u64;
        for number in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let len = match number % 1_000 {
                // Longer than a segment, then empty.
                7 => SEGMENT_LEN + 1,
                8 => 0,
                _ => (state >> 33) as usize % 2_000,
            };
            let bytes = frame(number, len);
            let part = part().filter(|_| state >> 58 & 3 == 1);
            let mut place = match part {
                Some(part) => store.insert_part(&bytes, part),
                None => store.insert(&bytes),
            };
            assert_eq!(store.part(&place), part);
            if state >> 60 == 0 {
                // An edited frame has no part.
                store.bytes_mut(&mut place).fill(9);
                assert_eq!(store.part(&place), None);
                assert_eq!(store.bytes(&place), vec![9; len]);
                store.remove(place);
                continue;
            }
            held.push_back((place, bytes));
            if held.len() > 1_000 {
                // Remove mostly the oldest frame, sometimes another.
                let index = if state >> 62 == 0 { 500 } else { 0 };
                if let Some((place, bytes)) = held.remove(index) {
                    assert_eq!(store.bytes(&place), bytes);
                    store.remove(place);
                }
            }
        }
        for (place, bytes) in held {
            assert_eq!(store.bytes(&place), bytes);
            store.remove(place);
        }
    }

    #[test]
    fn memory_follows_the_frames_in_flight() {
        let mut store = FrameStore::default();
        for number in 0..100_000 {
            let place = store.insert(&frame(number, 1_500));
            store.remove(place);
            assert_eq!(store.memory(), SEGMENT_LEN as u64);
        }
        let places: Vec<StoredFrame> = (0..10_000)
            .map(|number| store.insert(&frame(number, 1_500)))
            .collect();
        assert!(store.memory() > 15_000_000);
        assert!(store.held() >= 15_000_000 && store.held() <= store.memory());
        for place in places {
            store.remove(place);
        }
        assert!(store.memory() <= (SEGMENT_LEN * (SPARE_MAX + 1)) as u64);
        assert_eq!(store.held(), 0);
        store.trim();
        assert_eq!((store.memory(), store.held()), (SEGMENT_LEN as u64, 0));
        let place = store.insert(&frame(0, 100));
        assert_eq!(store.held(), 100);
        store.remove(place);
    }
}
