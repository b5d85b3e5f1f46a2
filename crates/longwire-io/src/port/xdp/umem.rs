//! The memory for frames, shared with the kernel and divided into chunks of one size.
//!
//! Every chunk belongs to one party at a time: to the kernel, to the receiving half, or
//! to the sending half. It changes hands through the rings.

use std::io;

use crate::mapping::Mapping;

/// Bytes that the kernel leaves free before a received frame (`XDP_PACKET_HEADROOM`);
/// the arrival's stamp is at their end.
pub(super) const HEADROOM: usize = 256;
/// Maximum size of a chunk.
pub(super) const PAGE: usize = 4096;

/// The memory, mapped until dropped.
pub(super) struct Umem {
    memory: Mapping,
    chunk: usize,
    chunks: usize,
}

impl Umem {
    /// Returns the chunk size for frames of `frame_max` bytes; `None` if they exceed the
    /// kernel's maximum, a page.
    pub(super) fn chunk_for(frame_max: usize) -> Option<usize> {
        [PAGE / 2, PAGE]
            .into_iter()
            .find(|chunk| frame_max + HEADROOM <= *chunk)
    }

    /// Maps memory for `chunks` chunks of `chunk` bytes.
    pub(super) fn new(chunk: usize, chunks: usize) -> io::Result<Umem> {
        Ok(Umem {
            memory: Mapping::anonymous(chunk * chunks, libc::MAP_POPULATE)?,
            chunk,
            chunks,
        })
    }

    /// Returns the kernel's description of the memory, with this many bytes of metadata
    /// before sent frames.
    pub(super) fn registration(&self, tx_metadata: usize) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.memory.start().as_ptr() as u64,
            len: self.len() as u64,
            chunk_size: self.chunk as u32,
            headroom: 0,
            flags: match tx_metadata {
                0 => 0,
                _ => libc::XDP_UMEM_TX_METADATA_LEN,
            },
            tx_metadata_len: tx_metadata as u32,
        }
    }

    fn len(&self) -> usize {
        self.chunk * self.chunks
    }

    /// Returns the bytes of a chunk.
    pub(super) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Returns the address of a chunk by its number.
    pub(super) fn address(&self, number: usize) -> u64 {
        (number * self.chunk) as u64
    }

    /// Returns the address of the chunk that contains an address.
    #[inline]
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk as u64 - 1)
    }

    /// Returns a piece of the memory; `None` if it is not inside of one chunk.
    ///
    /// # Safety
    /// The chunk must be the caller's, and no other reference into it may be in use
    /// while the returned one is.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "chunks are handed out one by one")]
    pub(super) unsafe fn piece(&self, address: u64, len: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(len)?;
        let chunk_end = usize::try_from(self.chunk_of(address)).ok()? + self.chunk;
        if end > chunk_end || end > self.len() {
            return None;
        }
        // SAFETY: inside of the mapping; the caller holds the chunk.
        let piece = unsafe { self.memory.start().add(start) };
        // SAFETY: as above.
        Some(unsafe { std::slice::from_raw_parts_mut(piece.as_ptr(), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_inside_of_chunks() {
        let umem = Umem::new(2048, 4).expect("memory");
        // SAFETY: the chunks have no other user, and the pieces are dropped at once.
        let has = |address, len| unsafe { umem.piece(address, len) }.is_some();
        assert!(has(0, 2048) && has(6144, 2048) && has(2304, 1792));
        assert!(!has(2304, 1793) && !has(8192, 1) && !has(u64::MAX, 2) && !has(1, usize::MAX));
        assert_eq!(umem.chunk_of(2304), 2048);
        assert_eq!(umem.address(3), 6144);
    }

    #[test]
    fn ethernet_frames_fit_half_a_page() {
        assert_eq!(Umem::chunk_for(1518), Some(2048));
        assert_eq!(Umem::chunk_for(3000), Some(4096));
        assert_eq!(Umem::chunk_for(9018), None);
    }
}
