//! The delay line: stores frames and carries them from the ingress to the egress stage.
//!
//! One thread writes and one reads; they may be the same. The content is a sequence of *records* in
//! an arena's segments. A record is a descriptor of 16 bytes (32 for frames that have offloads, are
//! truncated, were cut from a train or stay in their port's memory), directly followed by the
//! frame's bytes. Both sides therefore access memory sequentially, and a short frame takes one or
//! two cache lines. The last record of a segment names the next segment.
//!
//! The sides share two counters: published records and returned segments. A segment is returned
//! once the reader is past it and no [`HeldFrame`] uses it. Only the reader holds and frees frames,
//! so the count of held frames is local and needs no atomics.

mod reader;
mod record;
mod writer;

use std::sync::atomic;

use longwire_engine::{Bytes, Nanos};

use crate::arena::{FreeSegments, Memory, ReturnRing, segments_in};
use crate::port::Offload;
use crate::port::offload::{Segments, TrainPart};
use crate::sync::{Arc, AtomicU64, CachePadded};

pub use crate::arena::{ArenaError, HugePages};
use reader::LINE_BITS;
pub use reader::{DelayLineReader, HeldFrame};
pub use record::Descriptor;
pub use writer::DelayLineWriter;

/// Configuration of a delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayLineConfig {
    /// Maximum memory for frames and descriptors, at least two segments of 128 KiB. Unused budget
    /// is only address space.
    pub budget: Bytes,
    /// Whether to request huge pages; see [`DelayLineWriter::huge_pages`] for the result.
    pub huge_pages: bool,
}

/// A frame's metadata on the delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Scheduled time of handover to the output port.
    pub release: Nanos,
    /// Opaque to the line; for example, a sequence number shared by several lines.
    pub tag: u32,
    /// Work that the sender left to the hardware.
    pub offload: Offload,
    /// The frame's position in the train from which it was cut, if any. `None` for frames in a
    /// port's memory.
    pub part: Option<TrainPart>,
    /// Wire length in bytes of a truncated frame. Values up to the frame's own length mean that it
    /// is complete. Not stored for offloaded frames, which are always complete.
    pub wire_len: u32,
}

impl Note {
    /// Returns the segmentation of the frame, or of its train.
    #[inline(always)]
    fn segments(&self) -> Option<Segments> {
        match self.part {
            Some(part) => Some(part.segments),
            None => self.offload.segments,
        }
    }
}

/// Failure to push a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PushError {
    #[error("the delay line's memory budget is exhausted")]
    BudgetExhausted,
    #[error("the frame is too long for the delay line")]
    TooLong,
}

/// State shared by both sides.
#[derive(Debug)]
struct SharedState {
    memory: Memory,
    /// Number of published records since the start.
    published: CachePadded<AtomicU64>,
    returns: ReturnRing,
    /// Distinguishes this line's frames from other lines'.
    line: u64,
}

/// Creates a delay line.
///
/// # Errors
/// The budget is below two segments or above a terabyte, or the address space is exhausted.
pub fn delay_line(
    config: &DelayLineConfig,
) -> Result<(DelayLineWriter, DelayLineReader), ArenaError> {
    let segments = segments_in(config.budget)?;
    let shared = Arc::new(SharedState {
        memory: Memory::new(segments, config.huge_pages)?,
        published: CachePadded(AtomicU64::new(0)),
        returns: ReturnRing::new(segments),
        line: line_number()?,
    });
    let mut free = FreeSegments::new(segments);
    // There are at least two segments; the reader starts in the writer's.
    let first = free.take(&shared.returns).unwrap_or(0);
    let writer = DelayLineWriter::new(Arc::clone(&shared), free, first);
    let reader = DelayLineReader::new(shared, segments, first);
    Ok((writer, reader))
}

/// Returns a number that is unique among this process's lines.
fn line_number() -> Result<u64, ArenaError> {
    // A standard atomic, because it orders nothing and outlives loom's models.
    static LINES: atomic::AtomicU64 = atomic::AtomicU64::new(0);
    let number = LINES.fetch_add(1, atomic::Ordering::Relaxed);
    // Frame handles have no room for larger numbers.
    if number >> LINE_BITS == 0 {
        Ok(number)
    } else {
        Err(ArenaError::TooMany)
    }
}
