//! The atomics of the lock-free structures, in one place so that loom can
//! stand in for them (the feature `loom`, of these tests alone), and what loom cannot see by
//! itself: who touches which bytes of the arena.

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

/// A value with cache lines of its own. Two lines, because the prefetcher of
/// x86 fetches them in pairs: a neighbour would be drawn along.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Watches accesses to memory that loom does not know: one loom cell stands
/// for each granule of it. Outside loom it is nothing.
#[derive(Debug)]
pub(crate) struct Watch {
    #[cfg(feature = "loom")]
    granules: Box<[loom::cell::UnsafeCell<()>]>,
}

/// Bytes that one watched cell stands for: what the smallest record has.
#[cfg(feature = "loom")]
const GRANULE: usize = 16;

impl Watch {
    /// For memory of `len` bytes.
    #[cfg_attr(
        not(feature = "loom"),
        allow(unused_variables, reason = "nothing is watched")
    )]
    pub(crate) fn new(len: usize) -> Watch {
        Watch {
            #[cfg(feature = "loom")]
            granules: (0..len.div_ceil(GRANULE))
                .map(|_| loom::cell::UnsafeCell::new(()))
                .collect(),
        }
    }

    /// Bytes are read: no other thread may be writing them.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "loom"),
        allow(unused_variables, reason = "nothing is watched")
    )]
    pub(crate) fn read(&self, at: usize, len: usize) {
        #[cfg(feature = "loom")]
        for granule in &self.granules[at / GRANULE..(at + len).div_ceil(GRANULE)] {
            granule.with(|_| ());
        }
    }

    /// Bytes are written: no other thread may be reading or writing them.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "loom"),
        allow(unused_variables, reason = "nothing is watched")
    )]
    pub(crate) fn write(&self, at: usize, len: usize) {
        #[cfg(feature = "loom")]
        for granule in &self.granules[at / GRANULE..(at + len).div_ceil(GRANULE)] {
            granule.with_mut(|_| ());
        }
    }
}
