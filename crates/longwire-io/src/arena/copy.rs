//! Copying a frame in. Most frames are short, and a call of `memcpy` with a
//! length that it must look at costs more than their bytes do.

use std::ptr;

/// Copies `bytes` to `to`.
///
/// # Safety
/// `bytes.len()` bytes at `to` are valid for writes and do not overlap
/// `bytes`.
#[inline(always)]
pub(crate) unsafe fn copy(bytes: &[u8], to: *mut u8) {
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

/// Copies the first and the last `N` bytes, which may overlap: all of them,
/// for lengths from `N` to `2 * N`, without a branch.
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
