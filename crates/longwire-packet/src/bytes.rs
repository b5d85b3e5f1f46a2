//! Fields of frames.

/// Returns the `N` bytes at an offset, if present.
#[inline]
pub(crate) fn array<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}

/// Returns the `N` bytes at an offset for modification, if present.
#[inline]
pub(crate) fn array_mut<const N: usize>(frame: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    frame.get_mut(at..)?.first_chunk_mut()
}

/// Returns the 16-bit number at an offset, if present.
#[inline]
pub(crate) fn word(frame: &[u8], at: usize) -> Option<u16> {
    array(frame, at).map(u16::from_be_bytes)
}

/// Writes the 16-bit number at an offset, which must be in the frame.
#[inline]
pub(crate) fn put_word(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
