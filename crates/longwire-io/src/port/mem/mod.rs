//! In-memory ports for benches and tests: a source of prebuilt frames, a counting and
//! checking sink, and a pipe.

mod pipe;
mod sink;
mod source;
mod wire;

pub use pipe::{PipeRx, PipeTx, pipe};
pub use sink::Sink;
pub use source::Source;
pub use wire::{MemWire, Symbol, WireCounts, WireFrame, WireReceiver, spacing_error};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::RegionId;
use crate::arena::prefetch_to_read;

/// Frames begin on separate cache lines.
const ALIGNMENT: usize = 64;

/// Maximum size of a region that is assumed to fit a cache.
const CACHED: usize = 1 << 20;

/// Prebuilt frames of one length, contiguous.
///
/// Each begins with its number and, if there is space, ends with the number's complement:
/// enough to check that a frame is complete and the expected one.
#[derive(Debug)]
struct Region {
    id: RegionId,
    bytes: Vec<u8>,
    size: usize,
    stride: usize,
}

/// Bytes of a frame's number.
const NUMBER: usize = 8;

impl Region {
    /// Creates as many frames of `size` bytes as fit into `area` bytes; at least one.
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

    /// Prefetches the frame at `place` if the region is larger than a cache.
    #[inline]
    fn warm(&self, place: usize) {
        if self.bytes.len() > CACHED {
            prefetch_to_read(self.bytes.as_ptr().wrapping_add(place), self.size);
        }
    }

    #[inline]
    fn frame(&self, place: u64) -> &[u8] {
        let at = place as usize;
        self.bytes.get(at..at + self.size).unwrap_or(&[])
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

/// Whether both ends of a frame match.
#[inline]
fn is_whole(frame: &[u8]) -> bool {
    match (frame.first_chunk::<NUMBER>(), frame.last_chunk::<NUMBER>()) {
        (Some(front), Some(back)) if frame.len() >= 2 * NUMBER => {
            u64::from_le_bytes(*front) == !u64::from_le_bytes(*back)
        }
        _ => true,
    }
}
