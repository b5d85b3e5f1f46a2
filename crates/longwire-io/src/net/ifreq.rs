//! Requests about an interface by name (netdevice(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

/// Creates a zeroed request about an interface.
///
/// # Errors
/// ENODEV if the name is longer than the kernel allows.
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

/// Sends a request through a socket or control file. The answer replaces the request's data.
///
/// # Safety
/// The request number must take an `ifreq`. If the `ifreq` contains a pointer, its target must have
/// room for any answer.
pub(crate) unsafe fn ask(
    file: BorrowedFd<'_>,
    question: libc::c_ulong,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the request has a terminated name; the caller guarantees the rest.
    let result = unsafe {
        let request: *mut libc::ifreq = request;
        libc::ioctl(file.as_raw_fd(), question as libc::Ioctl, request)
    };
    Errno::result(result)?;
    Ok(())
}
