//! The arena: one large piece of memory, cut into segments that come and go
//! with the backlog.
//!
//! The budget is address space only. Pages are real once a segment on them
//! has been used, and a segment that was used is used again before one that
//! was not: so resident memory follows the largest backlog there was, and a
//! short backlog lives in a few segments that stay in the cache, however
//! large the budget is.

mod copy;
mod memory;
mod segments;

use std::fmt;
use std::io;

use longwire_engine::Bytes;

pub(crate) use copy::{fence_streamed, prefetch_to_read};
pub(crate) use memory::Memory;
pub(crate) use segments::{FreeSegments, ReturnRing, Returns};

/// Bytes of a segment. It must hold the longest frame (a 64 KB super-packet)
/// and is better small, so that a held-back frame pins little.
#[cfg(not(feature = "loom"))]
pub(crate) const SEGMENT: usize = 128 << 10;

/// Small enough for loom to fill it with two frames.
#[cfg(feature = "loom")]
pub(crate) const SEGMENT: usize = 96;

/// Why memory for a delay line could not be had.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ArenaError {
    #[error("a memory budget of {budget} is too small; the least is {least}")]
    TooSmall { budget: Bytes, least: Bytes },
    #[error("a memory budget of {budget} is too large; the most is {most}")]
    TooLarge { budget: Bytes, most: Bytes },
    #[error("no address space for a memory budget of {budget}: {source}; give a smaller one")]
    Refused { budget: Bytes, source: io::Error },
    #[error("cannot make an event descriptor: {0}")]
    Event(#[from] nix::Error),
}

/// Whether the arena lies on huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// They were not asked for.
    NotAsked,
    /// The kernel was asked for them and gives them as far as it has some.
    Transparent,
    /// The system has none to give.
    Unavailable {
        /// What it said.
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

/// How many segments a budget makes.
pub(crate) fn segments_in(budget: Bytes) -> Result<u32, ArenaError> {
    // One segment is being written while another is read, at the least. The
    // most is a terabyte: the tables of segments are real memory, 32 MB then.
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
