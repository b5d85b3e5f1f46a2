//! The delay line: the channel that carries frames from the stage that takes
//! them in to the stage that lets them out, and keeps them meanwhile.
//!
//! One thread writes, one reads (it may be the same). What waits is a row of
//! *records* in the segments of an arena: a descriptor of 16 bytes (32 for a
//! frame with unfinished offloads, and for one that stays in its port's
//! memory), and right behind it the frame's bytes. So both sides go through
//! memory in one sequence, and a short frame costs one or two cache lines in
//! all. The last record of a segment names the segment that follows.
//!
//! The two sides share two counters: how many records the writer has
//! published, and how many segments the reader has given back. A segment is
//! given back when the reader is past it and no [`HeldFrame`] keeps bytes in
//! it; as only the reader holds and frees frames, that count is its own and
//! needs no atomics.

mod reader;
mod record;
mod writer;

use std::sync::atomic;

use longwire_engine::{Bytes, LinkId, Nanos};

use crate::arena::{FreeSegments, Memory, ReturnRing, segments_in};
use crate::port::Offload;
use crate::sync::{Arc, AtomicU64, Padded};

pub use crate::arena::{ArenaError, HugePages};
pub use reader::{DelayLineReader, HeldFrame};
pub use record::Descriptor;
pub use writer::DelayLineWriter;

/// What a delay line is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayLineConfig {
    /// The most memory for frames and their descriptors; at least two
    /// segments of 128 KiB. It is address space until frames fill it.
    pub budget: Bytes,
    /// Whether to ask for huge pages; [`DelayLineWriter::huge_pages`] says
    /// what came of it.
    pub huge_pages: bool,
}

/// What goes with a frame through the delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When it must be handed to the output port.
    pub release: Nanos,
    /// The link it is on.
    pub link: LinkId,
    /// What its sender left to the hardware.
    pub offload: Offload,
    /// How long it was on the wire, in bytes, when only its beginning is
    /// here; anything up to its own length says that it is whole. Not kept
    /// for a frame with an offload, all of which is always here.
    pub wire_len: u32,
}

/// The delay line's budget has no room for the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delay line's memory budget is used up")]
pub struct Exhausted;

/// What both sides hold.
#[derive(Debug)]
struct Shared {
    memory: Memory,
    /// How many records the reader may read, since the start.
    published: Padded<AtomicU64>,
    returns: ReturnRing,
    /// Tells the frames of this line from another's.
    line: u64,
}

/// Makes a delay line.
///
/// # Errors
/// When the budget is below two segments or above a terabyte, or the system
/// gives no address space for it.
pub fn delay_line(
    config: &DelayLineConfig,
) -> Result<(DelayLineWriter, DelayLineReader), ArenaError> {
    // Not one of loom's: it orders nothing, and outlives loom's models.
    static LINES: atomic::AtomicU64 = atomic::AtomicU64::new(0);
    let segments = segments_in(config.budget)?;
    let shared = Arc::new(Shared {
        memory: Memory::new(segments, config.huge_pages)?,
        published: Padded(AtomicU64::new(0)),
        returns: ReturnRing::new(segments),
        line: LINES.fetch_add(1, atomic::Ordering::Relaxed),
    });
    let mut free = FreeSegments::new(segments);
    // There are two at least; the reader starts where the writer does.
    let first = free.take(&shared.returns).unwrap_or(0);
    let writer = DelayLineWriter::new(Arc::clone(&shared), free, first);
    let reader = DelayLineReader::new(shared, segments, first);
    Ok((writer, reader))
}
