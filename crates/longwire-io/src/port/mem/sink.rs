//! A sink that counts and checks all frames.

use std::sync::Arc;

use super::{Region, Source, is_whole};
use crate::port::{PortError, PushResult, RegionId, TxFrame, TxPort};

/// Slots of a copying sink: a driver's ring, small enough for the cache.
const SLOTS: usize = 256;

/// Maximum length of copied frames.
const FRAME_MAX: usize = 65_536 + 64;

/// Accepts every frame.
#[derive(Debug)]
pub struct Sink {
    /// Memory of lent frames, for checks in place.
    region: Option<Arc<Region>>,
    /// Target of copies, like the ring of a network card's driver.
    ring: Vec<u8>,
    slot: usize,
    next: usize,
    frames: u64,
    bytes: u64,
    damaged: u64,
    pushed: usize,
}

impl Sink {
    /// Creates a sink that copies frames into its ring and checks them there.
    pub fn copying() -> Sink {
        Sink {
            region: None,
            ring: Vec::new(),
            slot: 0,
            next: 0,
            frames: 0,
            bytes: 0,
            damaged: 0,
            pushed: 0,
        }
    }

    /// Creates a sink that accepts the source's frames in place, reading only their
    /// lengths and places, like a network card's driver.
    pub fn in_place(source: &mut Source) -> Sink {
        source.lending = true;
        Sink {
            region: Some(Arc::clone(&source.region)),
            ..Sink::copying()
        }
    }

    /// Returns the number of accepted frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the number of accepted bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of incomplete or unexpected frames.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    #[inline]
    fn copy(&mut self, bytes: &[u8]) {
        if bytes.len() > self.slot {
            self.grow(bytes.len());
        }
        let slot = &mut self.ring[self.next * self.slot..][..bytes.len()];
        copy(bytes, slot);
        self.damaged += u64::from(!is_whole(slot));
        self.next = (self.next + 1) % SLOTS;
        self.bytes += bytes.len() as u64;
    }

    /// Enlarges the ring for longer frames.
    #[cold]
    fn grow(&mut self, len: usize) {
        self.slot = len.next_multiple_of(64);
        self.ring = vec![0; self.slot * SLOTS];
        self.next = 0;
    }

    #[inline]
    fn take_in_place(&mut self, place: u64) {
        let Some(region) = &self.region else {
            self.damaged += 1;
            return;
        };
        let whole =
            (place as usize).is_multiple_of(region.stride) && (place as usize) < region.bytes.len();
        self.damaged += u64::from(!whole);
        self.bytes += region.size as u64;
    }
}

/// Copies a frame; short frames, the most frequent, without a call.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    const HALF: usize = 32;
    if from.len() <= 2 * HALF
        && let (Some(head), Some(tail)) = (from.first_chunk::<HALF>(), from.last_chunk::<HALF>())
    {
        if let Some(place) = to.first_chunk_mut::<HALF>() {
            *place = *head;
        }
        if let Some(place) = to.last_chunk_mut::<HALF>() {
            *place = *tail;
        }
        return;
    }
    to.copy_from_slice(from);
}

impl TxPort for Sink {
    #[inline]
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if frame.bytes.len() > FRAME_MAX {
            return PushResult::Refused;
        }
        match frame.lent {
            Some(place) => self.take_in_place(place),
            None => self.copy(frame.bytes),
        }
        self.frames += 1;
        self.pushed += 1;
        PushResult::Taken
    }

    #[inline]
    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(std::mem::take(&mut self.pushed))
    }

    fn free_slots(&self) -> usize {
        SLOTS
    }

    fn unsent(&self) -> usize {
        self.pushed
    }

    fn region(&self) -> Option<RegionId> {
        self.region.as_ref().map(|region| region.id)
    }
}
