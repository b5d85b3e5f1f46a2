//! Counters in eBPF programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::instruction::{Instruction, load_value};
use crate::mapping::Mapping;

/// Counters that programs increment, mapped into this process: reading them takes no
/// system call and no rights.
#[derive(Debug)]
pub(crate) struct CounterMap<const N: usize> {
    map: OwnedFd,
    memory: Mapping,
}

impl<const N: usize> CounterMap<N> {
    /// Creates zeroed counters.
    ///
    /// # Errors
    /// Missing CAP_BPF.
    pub fn new() -> io::Result<CounterMap<N>> {
        let bytes = size_of::<[AtomicU64; N]>();
        let map = super::create_value_map(bytes as u32)?;
        let memory = Mapping::shared(map.as_fd(), 0, bytes, 0)?;
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
        let counters = unsafe { self.memory.start().cast::<[AtomicU64; N]>().as_ref() };
        counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}
