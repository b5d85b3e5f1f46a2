//! The bytes of frames that wait for their release.
//!
//! Frames are written one after the other into segments, so that their bytes
//! lie in the order in which they will mostly be read; a segment is reused when
//! the last of its frames has gone. Memory follows the frames in flight, and a
//! frame that is held back pins only its own segment.

/// Bytes of a segment; a longer frame gets a segment of its length.
const SEGMENT_LEN: usize = 256 * 1024;

/// Empty segments kept for later; more are given back.
const SPARE_MAX: usize = 16;

/// The location of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLocation {
    segment: u32,
    at: u32,
    len: u32,
}

#[derive(Debug, Default)]
struct Segment {
    bytes: Vec<u8>,
    /// Frames in it that have not gone.
    live: u32,
}

/// The bytes of many frames.
#[derive(Debug)]
pub(super) struct FrameStore {
    segments: Vec<Segment>,
    /// The segment to which frames are written.
    current: u32,
    /// Empty segments with memory, and indices of segments without.
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

    /// Keeps a copy of a frame.
    #[inline]
    pub fn insert(&mut self, frame: &[u8]) -> FrameLocation {
        let segment = &self.segments[self.current as usize];
        if segment.bytes.capacity() - segment.bytes.len() < frame.len() {
            self.turn(frame.len());
        }
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

    /// Adds a reference to a frame: it has a duplicate.
    pub fn share(&mut self, place: FrameLocation) {
        self.segments[place.segment as usize].live += 1;
    }

    /// Removes a reference to a frame; after the last its location is invalid.
    #[inline]
    pub fn remove(&mut self, place: FrameLocation) {
        let segment = &mut self.segments[place.segment as usize];
        segment.live -= 1;
        if segment.live == 0 {
            segment.bytes.clear();
            if place.segment != self.current {
                self.close(place.segment);
            }
        }
    }

    /// The memory held, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The most memory ever held, in bytes.
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

    /// Keeps an empty segment for later, or gives its memory back.
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Returns a frame whose bytes depend on its number.
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
                // Mostly the oldest, sometimes one out of order.
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
