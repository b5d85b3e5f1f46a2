//! The delay line: the channel that stores frames and carries them from the ingress
//! stage to the egress stage.
//!
//! One thread writes, one reads (it may be the same). The content is a sequence of
//! *records* in the segments of an arena: a descriptor of 16 bytes (32 for a frame with
//! unfinished offloads, and for one that stays in its port's memory), followed directly
//! by the frame's bytes. So both sides access memory in one sequence, and a short frame
//! costs one or two cache lines in all. The last record of a segment names the next
//! segment.
//!
//! The two sides share two counters: how many records the writer has published, and how
//! many segments the reader has returned. A segment is returned when the reader is past
//! it and no [`HeldFrame`] keeps bytes in it; as only the reader holds and frees
//! frames, that count is local and needs no atomics.

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
    /// Maximum memory for frames and their descriptors; at least two segments of 128
    /// KiB. It is address space until frames fill it.
    pub budget: Bytes,
    /// Whether to request huge pages; [`DelayLineWriter::huge_pages`] returns the
    /// result.
    pub huge_pages: bool,
}

/// The data that accompanies a frame through the delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When it must be handed to the output port.
    pub release: Nanos,
    /// A number for the reader: where several lines share an order, the frame's place in it.
    pub tag: u32,
    /// Work that its sender left to the hardware.
    pub offload: Offload,
    /// Its place in the train from which it was cut, if it was. A frame in the port's
    /// memory has none.
    pub part: Option<TrainPart>,
    /// Its length on the wire, in bytes, if only its beginning is here; a value up to
    /// its own length means that it is whole. Not stored for a frame with an offload,
    /// which is always whole.
    pub wire_len: u32,
}

impl Note {
    /// Returns the segmentation of the frame, or of the train from which it was cut.
    #[inline(always)]
    fn segments(&self) -> Option<Segments> {
        match self.part {
            Some(part) => Some(part.segments),
            None => self.offload.segments,
        }
    }
}

/// Failure to put a frame on a delay line.
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
    /// Number of records that the reader may read, since the start.
    published: CachePadded<AtomicU64>,
    returns: ReturnRing,
    /// Distinguishes frames of this line from those of another.
    line: u64,
}

/// Creates a delay line.
///
/// # Errors
/// If the budget is below two segments or above a terabyte, or the system provides no
/// address space for it.
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
    // There are at least two; the reader starts where the writer does.
    let first = free.take(&shared.returns).unwrap_or(0);
    let writer = DelayLineWriter::new(Arc::clone(&shared), free, first);
    let reader = DelayLineReader::new(shared, segments, first);
    Ok((writer, reader))
}

/// Returns a number that no other line of this process has.
fn line_number() -> Result<u64, ArenaError> {
    // Not one of loom's: it orders nothing, and outlives loom's models.
    static LINES: atomic::AtomicU64 = atomic::AtomicU64::new(0);
    let number = LINES.fetch_add(1, atomic::Ordering::Relaxed);
    // Handles of frames have no space for more.
    if number >> LINE_BITS == 0 {
        Ok(number)
    } else {
        Err(ArenaError::TooMany)
    }
}
