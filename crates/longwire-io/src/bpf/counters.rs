//! Counters in eBPF programs.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::instruction::{Instruction, load_value};

/// Counters that programs increment, mapped into this process: reading them takes no
/// system call and no rights.
#[derive(Debug)]
pub(crate) struct CounterMap<const N: usize> {
    map: OwnedFd,
    memory: NonNull<[AtomicU64; N]>,
}

// SAFETY: the mapping is this value's alone, and only atomics are in it.
unsafe impl<const N: usize> Send for CounterMap<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for CounterMap<N> {}

impl<const N: usize> CounterMap<N> {
    const BYTES: usize = size_of::<[AtomicU64; N]>();

    /// Creates zeroed counters.
    ///
    /// # Errors
    /// Missing CAP_BPF.
    pub fn new() -> io::Result<CounterMap<N>> {
        let map = super::create_value_map(Self::BYTES as u32)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of the size of the
        // map's only value.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(CounterMap { map, memory })
    }

    /// Returns instructions that load the address of a counter.
    pub fn load(&self, to: u8, index: usize) -> [Instruction; 2] {
        let offset = index * size_of::<AtomicU64>();
        load_value(to, self.map.as_raw_fd(), offset as i32)
    }

    /// Returns the counts.
    pub fn get(&self) -> [u64; N] {
        // SAFETY: the mapping has this many aligned words, lives as long as this value,
        // and is accessed atomically by all.
        let counters = unsafe { self.memory.as_ref() };
        counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}

impl<const N: usize> Drop for CounterMap<N> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, and no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), Self::BYTES) };
    }
}
