//! Memory mappings that are unmapped on drop.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A readable and writable mapping. Its users coordinate access to the bytes.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned by this value and not tied to a thread; this type does not access
// it.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of a file at an offset. The kernel accesses the same bytes. `flags` are
    /// added to `MAP_SHARED`.
    pub(crate) fn shared(
        file: BorrowedFd<'_>,
        offset: libc::off_t,
        len: usize,
        flags: libc::c_int,
    ) -> io::Result<Mapping> {
        Mapping::new(len, libc::MAP_SHARED | flags, file.as_raw_fd(), offset)
    }

    /// Maps zeroed memory. `flags` are added to `MAP_PRIVATE` and `MAP_ANONYMOUS`.
    pub(crate) fn anonymous(len: usize, flags: libc::c_int) -> io::Result<Mapping> {
        Mapping::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, -1, 0)
    }

    fn new(
        len: usize,
        flags: libc::c_int,
        file: libc::c_int,
        offset: libc::off_t,
    ) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing one.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, file, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// Returns the page-aligned address of the first byte.
    #[inline(always)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, and no reference into it outlives its owner. A
        // failure only leaks address space.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
