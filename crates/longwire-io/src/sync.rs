//! The atomics of the lock-free structures, in one place so that loom can replace them
//! (the feature `loom`, for its tests only), and a check that loom cannot make by
//! itself: which thread accesses which bytes of the arena.

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

/// A value on separate cache lines. Two lines, because the prefetcher of x86 fetches
/// them in pairs, including a neighbour's.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// Watches accesses to memory that loom does not know: one loom cell stands for each
/// granule of it. Empty without loom.
#[derive(Debug)]
pub(crate) struct AccessWatch {
    #[cfg(feature = "loom")]
    granules: Box<[loom::cell::UnsafeCell<()>]>,
}

/// Bytes of one watched cell: the size of the smallest record.
#[cfg(feature = "loom")]
const GRANULE: usize = 16;

impl AccessWatch {
    /// Creates a watch for memory of `len` bytes.
    #[cfg_attr(
        not(feature = "loom"),
        allow(unused_variables, reason = "nothing is watched")
    )]
    pub(crate) fn new(len: usize) -> AccessWatch {
        AccessWatch {
            #[cfg(feature = "loom")]
            granules: (0..len.div_ceil(GRANULE))
                .map(|_| loom::cell::UnsafeCell::new(()))
                .collect(),
        }
    }

    /// Notes a read: no other thread may be writing the bytes.
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

    /// Notes a write: no other thread may be reading or writing the bytes.
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
