//! Requests about an interface by its name (netdevice(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Creates a zeroed request about an interface.
///
/// # Errors
/// ENODEV for a name longer than the kernel's.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: `ifreq` is a C structure of integers and pointers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Sends a request by a socket or control file; the answer replaces its data.
///
/// # Safety
/// The question takes an `ifreq`. If it takes a pointer in it, that points to memory with space for
/// any answer.
pub(crate) unsafe fn ask(
    file: BorrowedFd<'_>,
    question: libc::c_ulong,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the request has a terminated name; the rest is the caller's promise.
    let result = unsafe {
        let request: *mut libc::ifreq = request;
        libc::ioctl(file.as_raw_fd(), question as libc::Ioctl, request)
    };
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
