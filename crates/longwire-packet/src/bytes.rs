//! Frame fields, and addresses as numbers.

use core::net::IpAddr;

/// Returns `N` bytes at an offset, if present.
#[inline]
pub(crate) fn array<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}

/// Returns `N` mutable bytes at an offset, if present.
#[inline]
pub(crate) fn array_mut<const N: usize>(frame: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    frame.get_mut(at..)?.first_chunk_mut()
}

/// Returns the 16-bit word at an offset, if present.
#[inline]
pub(crate) fn word(frame: &[u8], at: usize) -> Option<u16> {
    array(frame, at).map(u16::from_be_bytes)
}

/// Writes the 16-bit word at an offset, which must lie within the frame.
#[inline]
pub(crate) fn put_word(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Returns an address in the high bits of a 128-bit number.
pub(crate) fn left_aligned(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns a mask of `bits` leading ones.
pub(crate) fn ones(bits: u8) -> u128 {
    !u128::MAX.checked_shr(bits.into()).unwrap_or(0)
}
