//! Memory mapped until it is dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A readable and writable mapping. Its users define who accesses which bytes.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value and not to a thread; this type does not access it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes at an offset of a file that the kernel accesses too. `flags` are added to
    /// `MAP_SHARED`.
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
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, file, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// Returns the address of the first byte, on a page boundary.
    #[inline(always)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, and no reference into it outlives its owner. A
        // failure would only leak address space.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
