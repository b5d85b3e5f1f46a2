//! An arena's memory: one anonymous mapping and all code that accesses it.
//!
//! Most frames are short: a call to `memcpy`, which branches on the length, would cost more than
//! the copy itself. Long frames are copied to uncached memory with non-temporal stores, because a
//! line that is overwritten entirely need not be read first.

#[cfg(target_arch = "x86_64")]
use std::arch::{
    asm,
    x86_64::{__m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128},
};
use std::fs;
use std::ptr::{self, NonNull};
use std::slice;

use longwire_engine::Bytes;
use nix::sys::mman::{MmapAdvise, madvise};

use super::{ArenaError, HugePages, SEGMENT};
use crate::mapping::Mapping;
use crate::sync::AccessWatch;

/// Alignment of huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes touched at creation. The first touch of a page takes about 1 us; with a backlog below this
/// size, none occurs while frames flow.
const POPULATED: usize = 256 << 10;

/// Bytes at the start that use ordinary pages, so that a short backlog takes little memory. The
/// first touch of a huge page takes some 100 us.
const SMALL_PAGES: usize = 4 << 20;

/// An arena's mapping.
///
/// The callers' protocol, stated in each method's safety contract, governs access to the bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    _mapped: Mapping,
    base: NonNull<u8>,
    len: usize,
    huge_pages: HugePages,
    watch: AccessWatch,
}

// SAFETY: the mapping is owned by this value and not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: every access goes through an unsafe method whose contract is that
// no other thread touches the same bytes at that time.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `segments` segments and populates [`POPULATED`] bytes.
    pub(crate) fn new(segments: u32, huge_pages: bool) -> Result<Memory, ArenaError> {
        let len = segments as usize * SEGMENT;
        let mapped = Mapping::anonymous(len + HUGE_PAGE, libc::MAP_NORESERVE);
        let mapped = mapped.map_err(|source| ArenaError::Refused {
            budget: Bytes(len as u64),
            source,
        })?;
        let skipped = mapped.start().as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: `align_offset` skips less than HUGE_PAGE bytes, and the
        // mapping is that much longer than `len`.
        let base = unsafe { mapped.start().add(skipped) };
        let mut memory = Memory {
            _mapped: mapped,
            base,
            len,
            huge_pages: HugePages::NotAsked,
            watch: AccessWatch::new(len),
        };
        if huge_pages {
            memory.huge_pages = memory.advise_huge_pages();
        }
        memory.touch_first(POPULATED);
        Ok(memory)
    }

    /// Requests transparent huge pages beyond the first megabytes, and returns the outcome.
    fn advise_huge_pages(&self) -> HugePages {
        const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
        let unavailable = |reason| HugePages::Unavailable { reason };
        // The kernel accepts the advice even if the setting is "never".
        match fs::read_to_string(SETTING) {
            Ok(setting) if setting.contains("[never]") => {
                return unavailable(format!("{SETTING} is set to never"));
            }
            Ok(_) => {}
            Err(error) => {
                let reason = format!("this kernel has no transparent huge pages: {error}");
                return unavailable(reason);
            }
        }
        let Some(rest) = self.len.checked_sub(SMALL_PAGES).filter(|rest| *rest > 0) else {
            return HugePages::NotAsked;
        };
        // SAFETY: the range is within this value's own mapping, and the advice changes none of its
        // bytes.
        let advised = unsafe {
            let start = self.base.add(SMALL_PAGES).cast();
            madvise(start, rest, MmapAdvise::MADV_HUGEPAGE)
        };
        match advised {
            Ok(()) => HugePages::Transparent,
            Err(errno) => unavailable(errno.to_string()),
        }
    }

    /// Touches the first `bytes` bytes to allocate their pages.
    fn touch_first(&mut self, bytes: usize) {
        const PAGE: usize = 4096;
        for at in (0..self.len.min(bytes)).step_by(PAGE) {
            // SAFETY: `at` is within the mapping, and `&mut self` is exclusive.
            unsafe { self.base.add(at).write_volatile(0) };
        }
    }

    /// Returns the outcome of the huge-page request.
    pub(crate) fn huge_pages(&self) -> &HugePages {
        &self.huge_pages
    }

    /// Writes `value` at `at`.
    ///
    /// # Safety
    /// The bytes are within the arena, `at` is aligned for `T`, and no other thread accesses them
    /// during the call.
    #[inline(always)]
    pub(crate) unsafe fn store<T: Copy>(&self, at: usize, value: T) {
        debug_assert!(at + size_of::<T>() <= self.len);
        self.watch.write(at, size_of::<T>());
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.base.add(at).cast::<T>().write(value) };
    }

    /// Reads the value at `at`.
    ///
    /// # Safety
    /// A `T` was stored at `at` earlier, visibly to this thread, and no other thread writes it
    /// during the call.
    #[inline(always)]
    pub(crate) unsafe fn load<T: Copy>(&self, at: usize) -> T {
        debug_assert!(at + size_of::<T>() <= self.len);
        self.watch.read(at, size_of::<T>());
        // SAFETY: the caller upholds the contract of `read`.
        unsafe { self.base.add(at).cast::<T>().read() }
    }

    /// Writes `value` at `at` and copies `bytes` to `at + bytes_at`, beyond the value.
    ///
    /// # Safety
    /// As for [`Self::store`], for both ranges.
    #[inline(always)]
    pub(crate) unsafe fn store_with<T: Copy>(
        &self,
        at: usize,
        value: T,
        bytes_at: usize,
        bytes: &[u8],
    ) {
        debug_assert!(size_of::<T>() <= bytes_at && at + bytes_at + bytes.len() <= self.len);
        self.watch.write(at, bytes_at + bytes.len());
        // SAFETY: the caller upholds the contract of `write`, and has exclusive access to the
        // target, so it cannot overlap a borrowed slice.
        unsafe {
            let place = self.base.add(at);
            place.cast::<T>().write(value);
            copy(bytes, place.add(bytes_at).as_ptr());
        }
    }

    /// Copies `bytes` to `at` with non-temporal stores. Call [`super::fence_streamed`] before
    /// publishing them to another thread.
    ///
    /// # Safety
    /// As for [`Self::store`].
    #[inline]
    pub(crate) unsafe fn stream_in(&self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.len);
        self.watch.write(at, bytes.len());
        // SAFETY: see `store_with`.
        unsafe { stream(bytes, self.base.add(at).as_ptr()) };
    }

    /// Prefetches cache lines for writing, from that of `from` on, in steps of a line until `until`.
    /// Returns the next step. The range may extend beyond the arena.
    #[inline(always)]
    pub(crate) fn prefetch_to_write(&self, from: usize, until: usize) -> usize {
        let mut at = from;
        while at < until {
            prefetch_to_write(self.base.as_ptr().wrapping_add(at));
            at += LINE;
        }
        at
    }

    /// Prefetches `len` bytes at `at` for reading. The range may extend beyond the arena.
    #[inline(always)]
    pub(crate) fn prefetch_to_read(&self, at: usize, len: usize) {
        prefetch_to_read(self.base.as_ptr().wrapping_add(at), len);
    }

    /// Borrows the `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes were written earlier, visibly to this thread, and no thread writes them while the
    /// slice lives.
    #[inline(always)]
    pub(crate) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        debug_assert!(at + len <= self.len);
        self.watch.read(at, len);
        // SAFETY: the caller upholds the contract of a shared slice; the mapping outlives `self`'s
        // borrow.
        unsafe { slice::from_raw_parts(self.base.add(at).as_ptr(), len) }
    }

    /// Borrows the `len` bytes at `at` for writing.
    ///
    /// # Safety
    /// The bytes were written earlier, visibly to this thread, and no other thread or handle
    /// accesses them while the slice lives.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller guarantees exclusive access"
    )]
    pub(crate) unsafe fn slice_mut(&self, at: usize, len: usize) -> &mut [u8] {
        debug_assert!(at + len <= self.len);
        self.watch.write(at, len);
        // SAFETY: the caller upholds the contract of an exclusive slice; the mapping outlives
        // `self`'s borrow.
        unsafe { slice::from_raw_parts_mut(self.base.add(at).as_ptr(), len) }
    }
}

/// Size of a cache line.
const LINE: usize = 64;

/// Copies `bytes` to `to`.
///
/// # Safety
/// `to` is valid for writes of `bytes.len()` bytes and does not overlap `bytes`.
#[inline(always)]
unsafe fn copy(bytes: &[u8], to: *mut u8) {
    let len = bytes.len();
    // SAFETY: each arm writes within `len` bytes: the block size is at most `len`, and twice the
    // block size is at least `len`.
    unsafe {
        match len {
            32..=64 => copy_ends::<32>(bytes, to),
            65..=128 => copy_ends::<64>(bytes, to),
            _ => ptr::copy_nonoverlapping(bytes.as_ptr(), to, len),
        }
    }
}

/// Copies the first and the last `N` bytes, which may overlap. For lengths from `N` to `2 * N`,
/// this copies the whole slice without a branch.
///
/// # Safety
/// As for [`copy`], and `bytes` has at least `N` bytes.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(bytes: &[u8], to: *mut u8) {
    let last = bytes.len() - N;
    // SAFETY: `last + N` is the slice's length, and the caller allows accesses within it.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), to, N);
        ptr::copy_nonoverlapping(bytes.as_ptr().add(last), to.add(last), N);
    }
}

/// Copies `bytes` to `to`, with non-temporal stores for whole cache lines. Call [`fence_streamed`]
/// before publishing the copy to another thread.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
unsafe fn stream(bytes: &[u8], to: *mut u8) {
    let from = bytes.as_ptr();
    let len = bytes.len();
    // Lines shared with a neighbour go through the cache: a partial non-temporal store would read
    // the rest of the line from memory.
    let head = to.align_offset(LINE).min(len);
    let end = head + (len - head) / LINE * LINE;
    // SAFETY: `head <= end <= len`; the lines between them are aligned in
    // `to`, and `_mm_loadu_si128` needs no alignment.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        for at in (head..end).step_by(LINE) {
            let (from, to): (*const __m128i, *mut __m128i) =
                (from.add(at).cast(), to.add(at).cast());
            let line: [_; 4] = std::array::from_fn(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
        ptr::copy_nonoverlapping(from.add(end), to.add(end), len - end);
    }
}

/// Copies `bytes` to `to`.
///
/// # Safety
/// As for [`copy`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(bytes: &[u8], to: *mut u8) {
    // SAFETY: the caller's contract is the same.
    unsafe { copy(bytes, to) }
}

/// Orders non-temporal stores before later stores.
#[inline(always)]
pub(crate) fn fence_streamed() {
    // SAFETY: every x86-64 processor has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_sfence();
    }
}

/// Calls `each` with the multiples of [`LINE`] below `len`.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn for_lines(len: usize, mut each: impl FnMut(usize)) {
    // `step_by` compiles to twice the instructions.
    let mut at = 0;
    while at < len {
        each(at);
        at += LINE;
    }
}

/// Prefetches the cache line at `at` for writing.
#[inline(always)]
fn prefetch_to_write(at: *const u8) {
    // `_mm_prefetch` has a write hint, but without a target feature it compiles to a read hint.
    // SAFETY: a prefetch is a hint: it faults at no address, changes nothing, and is a no-op on the
    // oldest processors.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("prefetchw [{line}]", line = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches the cache lines of `len` bytes at `from` for reading. `from` may be any address.
#[inline(always)]
pub fn prefetch_to_read(from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for_lines(len, |at| {
        // SAFETY: a prefetch is a hint; it faults at no address and changes
        // nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast()) };
    });
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_arena_takes_little_memory() {
        const PAGE: usize = 4096;
        let memory = Memory::new(512, true).expect("64 MiB of address space");
        let mut pages = vec![0u8; memory.len / PAGE];
        // SAFETY: the range is the arena's, and the kernel writes one byte per page.
        let found =
            unsafe { libc::mincore(memory.base.as_ptr().cast(), memory.len, pages.as_mut_ptr()) };
        assert_eq!(found, 0);
        let resident = pages.iter().filter(|page| **page & 1 == 1).count() * PAGE;
        let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let expected = match setting {
            Ok(setting) if setting.contains("[always]") => HUGE_PAGE,
            _ => POPULATED,
        };
        assert_eq!(resident, expected);
    }
}
