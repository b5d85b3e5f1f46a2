//! Atomics for the lock-free structures, replaced by loom's in its tests (feature `loom`), and a
//! check of arena accesses, which loom does not track.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Locks a mutex, ignoring poisoning: no panic leaves its contents half-changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value padded to two cache lines, because the x86 prefetcher fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// Checks accesses to memory that loom does not track, with one loom cell per granule. Empty
/// without loom.
#[derive(Debug)]
pub(crate) struct AccessWatch {
    #[cfg(feature = "loom")]
    granules: Box<[loom::cell::UnsafeCell<()>]>,
}

/// Size of a granule: that of the smallest record.
#[cfg(feature = "loom")]
const GRANULE: usize = 16;

#[cfg_attr(
    not(feature = "loom"),
    allow(unused_variables, reason = "nothing is watched")
)]
impl AccessWatch {
    /// Watches `len` bytes.
    pub(crate) fn new(len: usize) -> AccessWatch {
        AccessWatch {
            #[cfg(feature = "loom")]
            granules: (0..len.div_ceil(GRANULE))
                .map(|_| loom::cell::UnsafeCell::new(()))
                .collect(),
        }
    }

    /// Records a read. No other thread may be writing the bytes.
    #[inline(always)]
    pub(crate) fn read(&self, at: usize, len: usize) {
        #[cfg(feature = "loom")]
        for granule in &self.granules[at / GRANULE..(at + len).div_ceil(GRANULE)] {
            granule.with(|_| ());
        }
    }

    /// Records a write. No other thread may be accessing the bytes.
    #[inline(always)]
    pub(crate) fn write(&self, at: usize, len: usize) {
        #[cfg(feature = "loom")]
        for granule in &self.granules[at / GRANULE..(at + len).div_ceil(GRANULE)] {
            granule.with_mut(|_| ());
        }
    }
}
