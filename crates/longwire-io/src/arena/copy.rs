//! Copies into the arena, and prefetches.
//!
//! Most frames are short, and a call of `memcpy`, which branches on the length, costs
//! more than the copy. Long frames to uncached memory are better streamed past the cache:
//! a fully overwritten line need not be read first.

use std::ptr;

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128,
};

/// Size of a cache line.
const LINE: usize = 64;

/// Copies `bytes` to `to`.
///
/// # Safety
/// `bytes.len()` bytes at `to` are valid for writes and do not overlap
/// `bytes`.
#[inline(always)]
pub(super) unsafe fn copy(bytes: &[u8], to: *mut u8) {
    let len = bytes.len();
    // SAFETY: each arm writes inside `len` bytes: the blocks' size is at most
    // `len`, and twice it at least.
    unsafe {
        match len {
            65..=128 => copy_ends::<64>(bytes, to),
            32..=64 => copy_ends::<32>(bytes, to),
            _ => ptr::copy_nonoverlapping(bytes.as_ptr(), to, len),
        }
    }
}

/// Copies the first and the last `N` bytes, which may overlap: the whole slice, without a
/// branch, for lengths from `N` to `2 * N`.
///
/// # Safety
/// As for [`copy`], and `bytes` has at least `N` bytes.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(bytes: &[u8], to: *mut u8) {
    let last = bytes.len() - N;
    // SAFETY: `last + N` is the length, within which the caller allows both.
    unsafe {
        let head = bytes.as_ptr().cast::<[u8; N]>().read_unaligned();
        let tail = bytes.as_ptr().add(last).cast::<[u8; N]>().read_unaligned();
        to.cast::<[u8; N]>().write_unaligned(head);
        to.add(last).cast::<[u8; N]>().write_unaligned(tail);
    }
}

/// Copies `bytes` to `to` with whole cache lines streamed past the cache.
/// [Fence](fence_streamed) the copy before publishing it to another thread.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn stream(bytes: &[u8], to: *mut u8) {
    let from = bytes.as_ptr();
    let len = bytes.len();
    // A line shared with a neighbour goes through the cache: streaming half a line would
    // read the other half from memory.
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
pub(super) unsafe fn stream(bytes: &[u8], to: *mut u8) {
    // SAFETY: the caller's contract is the same.
    unsafe { copy(bytes, to) }
}

/// Orders streamed copies before later stores.
#[inline(always)]
pub(crate) fn fence_streamed() {
    // SAFETY: every x86-64 processor has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_sfence();
    }
}

/// Prefetches the cache lines of `len` bytes at `from` for writing.
///
/// Steps count from `from`, not from cache lines: with consecutive records, the line
/// missed by the last step is the first of the next record, and records of equal length
/// take the same number of steps.
#[inline(always)]
pub(super) fn prefetch_to_write(from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LINE) {
        // `_mm_prefetch` has a hint for writing, but without a target feature
        // it is compiled to one for reading.
        // SAFETY: a prefetch is a hint; it faults at no address, changes
        // nothing, and does nothing on the oldest processors.
        unsafe {
            asm!("prefetchw [{line}]", line = in(reg) from.wrapping_add(at),
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, len);
}

/// Prefetches the cache lines of `len` bytes at `from` for reading. `from` may be any
/// address: a prefetch is a hint.
#[inline(always)]
pub fn prefetch_to_read(from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LINE) {
        // SAFETY: a prefetch is a hint; it faults at no address and changes
        // nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, len);
}
