//! The arena: a large memory range divided into segments, allocated and freed with the
//! backlog.
//!
//! The budget is address space. Pages are allocated when a segment is first used, and
//! used segments are reused first. So resident memory follows the peak backlog, and a
//! short backlog stays in a few cached segments regardless of the budget.

mod copy;
mod memory;
mod segments;

use std::fmt;
use std::io;

use longwire_engine::Bytes;

pub(crate) use copy::fence_streamed;
pub use copy::prefetch_to_read;
pub(crate) use memory::Memory;
pub(crate) use segments::{FreeSegments, ReturnProducer, ReturnRing};

/// Segment size in bytes. It must hold the longest frame, a 64 KB super-packet; smaller
/// segments waste less memory on a held frame.
#[cfg(not(feature = "loom"))]
pub(crate) const SEGMENT: usize = 128 << 10;

/// Small enough for loom to fill with two frames.
#[cfg(feature = "loom")]
pub(crate) const SEGMENT: usize = 96;

/// Failure to allocate the memory of a delay line.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ArenaError {
    #[error("a memory budget of {budget} is too small; the minimum is {least}")]
    TooSmall { budget: Bytes, least: Bytes },
    #[error("a memory budget of {budget} is too large; the maximum is {most}")]
    TooLarge { budget: Bytes, most: Bytes },
    #[error("no address space for a memory budget of {budget}: {source}; reduce it")]
    Refused { budget: Bytes, source: io::Error },
    #[error("delay line numbers exhausted after 2^28")]
    TooMany,
    #[error("cannot create an event descriptor: {0}")]
    Event(#[from] nix::Error),
}

/// Whether the arena uses huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Not requested.
    NotAsked,
    /// Requested; provided by the kernel as available.
    Transparent,
    /// Not available on this system.
    Unavailable {
        /// The system's message.
        reason: String,
    },
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HugePages::NotAsked => f.write_str("ordinary pages"),
            HugePages::Transparent => f.write_str("transparent huge pages"),
            HugePages::Unavailable { reason } => {
                write!(f, "ordinary pages: no huge pages ({reason})")
            }
        }
    }
}

/// Returns the number of segments in a budget.
pub(crate) fn segments_in(budget: Bytes) -> Result<u32, ArenaError> {
    // The minimum is one segment to write and one to read. The maximum is a terabyte,
    // whose resident segment tables take 32 MB.
    const LEAST: u64 = 2;
    const MOST: u64 = (1 << 40) / (128 << 10);
    let bytes = |count: u64| Bytes(count * SEGMENT as u64);
    match budget.0 / SEGMENT as u64 {
        count if count < LEAST => Err(ArenaError::TooSmall {
            budget,
            least: bytes(LEAST),
        }),
        count if count > MOST => Err(ArenaError::TooLarge {
            budget,
            most: bytes(MOST),
        }),
        count => Ok(count as u32),
    }
}
