//! In-memory ports for benches and tests: a source of prebuilt frames, a sink that counts and
//! checks, and a pipe.

mod pipe;

pub use pipe::{PipeRx, PipeTx, pipe};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longwire_engine::{BitRate, Nanos};

use super::{
    Offload, PortError, PushResult, ReceiveResult, Received, RegionId, RxFrame, RxPort, TxFrame,
    TxPort,
};
use crate::arena::prefetch_to_read;

/// Alignment of frames: each begins on a separate cache line.
const ALIGNMENT: usize = 64;

/// Maximum size of a region assumed to fit in the cache.
const CACHED: usize = 1 << 20;

/// Contiguous prebuilt frames of equal length.
///
/// Each frame begins with its number and, if there is room, ends with the number's complement. That
/// suffices to check that a frame is complete and the expected one.
#[derive(Debug)]
struct Region {
    id: RegionId,
    bytes: Vec<u8>,
    size: usize,
    stride: usize,
}

/// Bytes of a frame number.
const NUMBER: usize = 8;

impl Region {
    /// Creates as many frames of `size` bytes as fit into `area` bytes, at least one.
    fn new(size: usize, area: usize) -> Arc<Region> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let stride = size.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let frames = (area / stride).max(1);
        let mut bytes = vec![0u8; frames * stride];
        for (number, slot) in bytes.chunks_exact_mut(stride).enumerate() {
            number_frame(&mut slot[..size], number as u64);
        }
        Arc::new(Region {
            id: RegionId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            bytes,
            size,
            stride,
        })
    }

    /// Prefetches the frame at `place`.
    #[inline]
    fn warm(&self, place: usize) {
        prefetch_to_read(self.bytes.as_ptr().wrapping_add(place), self.size);
    }
}

fn number_frame(frame: &mut [u8], number: u64) {
    if let Some(front) = frame.first_chunk_mut::<NUMBER>() {
        *front = number.to_le_bytes();
    }
    if frame.len() >= 2 * NUMBER
        && let Some(back) = frame.last_chunk_mut::<NUMBER>()
    {
        *back = (!number).to_le_bytes();
    }
}

/// Returns whether both ends of a frame have the expected contents.
#[inline]
fn is_whole(frame: &[u8]) -> bool {
    match (frame.first_chunk::<NUMBER>(), frame.last_chunk::<NUMBER>()) {
        (Some(front), Some(back)) if frame.len() >= 2 * NUMBER => {
            u64::from_le_bytes(*front) == !u64::from_le_bytes(*back)
        }
        _ => true,
    }
}

/// Slots in a copying sink's ring: few enough to fit in the cache, like a driver's.
const SLOTS: usize = 256;

/// Maximum length of a copied frame in bytes.
const FRAME_MAX: usize = 65_536 + 64;

/// A sending half that counts and checks frames.
#[derive(Debug, Default)]
pub struct Sink {
    /// Region of the lent frames, to check them in place.
    region: Option<Arc<Region>>,
    /// Target of copies, like a network driver's buffers.
    ring: Vec<u8>,
    slot: usize,
    /// Position of the next slot.
    next: usize,
    /// Number of frames that have left.
    frames: u64,
    bytes: u64,
    damaged: u64,
    pushed: usize,
}

impl Sink {
    /// Creates a sink that copies frames into its ring and checks the copies.
    pub fn copying() -> Sink {
        Sink::default()
    }

    /// Creates a sink that accepts the source's frames in place and reads only their lengths and
    /// places, as a network driver does.
    pub fn in_place(source: &mut Source) -> Sink {
        source.lending = true;
        Sink {
            region: Some(Arc::clone(&source.region)),
            ..Sink::copying()
        }
    }

    /// Returns the number of accepted frames.
    pub fn frames(&self) -> u64 {
        self.frames + self.pushed as u64
    }

    /// Returns the number of accepted bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of incomplete or unexpected frames.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Returns `false` if the frame is too long.
    #[inline(always)]
    fn copy(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.slot && !self.grow(bytes.len()) {
            return false;
        }
        let slot = &mut self.ring[self.next..][..bytes.len()];
        copy(bytes, slot);
        self.damaged += u64::from(!is_whole(slot));
        self.next += self.slot;
        if self.next == self.ring.len() {
            self.next = 0;
        }
        self.bytes += bytes.len() as u64;
        true
    }

    /// Enlarges the ring for longer frames. Returns `false` if the frame is too long.
    #[cold]
    fn grow(&mut self, len: usize) -> bool {
        if len > FRAME_MAX {
            return false;
        }
        self.slot = len.next_multiple_of(64);
        self.ring = vec![0; self.slot * SLOTS];
        self.next = 0;
        true
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

/// Copies a frame; short frames, the most frequent, without a function call.
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
    // A call would take a fifth of a short frame's time at the egress.
    #[inline(always)]
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        match frame.lent {
            Some(place) => self.take_in_place(place),
            None if !self.copy(frame.bytes) => return PushResult::Refused,
            None => {}
        }
        self.pushed += 1;
        PushResult::Taken
    }

    #[inline]
    fn flush(&mut self) -> Result<usize, PortError> {
        self.frames += self.pushed as u64;
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

/// Prefetch distance in an uncached region. A network card would have put the frames in the cache.
const WARM_AHEAD: usize = 4096;

/// A receiving half that delivers a region's frames repeatedly, as fast as the caller accepts them.
#[derive(Debug)]
pub struct Source {
    region: Arc<Region>,
    next_place: usize,
    left: u64,
    wire: SaturatedWire,
    /// Whether frames are lent in place, without reading their bytes.
    lending: bool,
}

impl Source {
    /// Creates a source of `count` frames of `size` bytes from a region of about `area` bytes, with
    /// the arrivals of a saturated wire at this rate, from time zero on.
    pub fn paced(size: usize, area: usize, rate: BitRate, count: u64) -> Source {
        Source {
            region: Region::new(size, area),
            next_place: 0,
            left: count,
            wire: SaturatedWire::new(size, rate),
            lending: false,
        }
    }
}

/// Arrivals of frames of equal length from a wire that is never idle.
#[derive(Clone, Copy, Debug)]
struct SaturatedWire {
    rate: u64,
    /// Serialisation time of a frame: nanoseconds, and a remainder in units of 1 ns / `rate`.
    interval: (u64, u64),
    /// Arrival of the next frame in virtual time, and its remainder.
    now: (u64, u64),
}

impl SaturatedWire {
    fn new(size: usize, rate: BitRate) -> SaturatedWire {
        let rate = rate.bits_per_sec();
        let interval = u128::from(size as u64 * 8) * 1_000_000_000;
        let (nanos, remainder) = (interval / u128::from(rate), interval % u128::from(rate));
        SaturatedWire {
            rate,
            interval: (u64::try_from(nanos).unwrap_or(u64::MAX), remainder as u64),
            now: (0, 0),
        }
    }

    #[inline(always)]
    fn next_arrival(&mut self) -> Nanos {
        let arrival = Nanos::from_nanos(self.now.0);
        self.now.1 += self.interval.1;
        let carry = self.now.1 >= self.rate;
        self.now.1 -= if carry { self.rate } else { 0 };
        self.now.0 += self.interval.0 + u64::from(carry);
        arrival
    }
}

impl RxPort for Source {
    #[inline]
    fn receive(&mut self, _now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        let frames = self.left.min(max as u64) as usize;
        let Region { size, stride, .. } = *self.region;
        let warms = !self.lending && self.region.bytes.len() > CACHED;
        for _ in 0..frames {
            let place = self.next_place;
            if warms {
                self.region.warm(place + WARM_AHEAD);
            }
            take(RxFrame {
                bytes: self.region.bytes.get(place..place + size).unwrap_or(&[]),
                arrival: self.wire.next_arrival(),
                offload: Offload::NONE,
                wire_len: size as u32,
                lent: Some(place as u64),
            });
            self.next_place += stride;
            if self.next_place >= self.region.bytes.len() {
                self.next_place = 0;
            }
        }
        self.left -= frames as u64;
        Ok(ReceiveResult {
            frames,
            end: self.left == 0,
        })
    }

    fn region(&self) -> Option<RegionId> {
        Some(self.region.id)
    }

    fn frame_max(&self) -> usize {
        self.region.size
    }
}
