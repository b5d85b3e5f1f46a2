//! Socket options and errors for the raw-socket ports.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use longwire_engine::Nanos;
use nix::errno::Errno;

use super::PortError;
use crate::net::ifreq;

/// Sets a socket option that has no safe wrapper.
pub(crate) fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which the kernel only reads, and only during the
    // call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Reads a socket option. Fields that an older kernel's shorter structure lacks are zero.
pub(crate) fn get_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    // SAFETY: every bit pattern is a valid `T`.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length describe `value`; the kernel writes at most that length, and any
    // bytes are a valid `T` (see `Plain`).
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    Errno::result(result)?;
    Ok(value)
}

/// C structures of integers: any bytes are a valid value.
///
/// # Safety
/// Every bit pattern must be a valid value of the type.
pub(crate) unsafe trait Plain {}

// SAFETY: integers.
unsafe impl Plain for libc::c_int {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: two integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: integers.
unsafe impl Plain for libc::xdp_options {}

/// Returns and clears the error pending on a socket, if any.
pub(crate) fn pending_error(socket: BorrowedFd<'_>) -> io::Result<Option<io::Error>> {
    let errno: libc::c_int = get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
    Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno)))
}

/// Interval between an idle port's checks of its interface, in nanoseconds, and in calls if these
/// elapse first, because a caller's clock may not advance. On a packet socket, a pending error ends
/// every sleep, so it is found within one interval.
const CHECK_EVERY: u64 = 10_000_000;
const CHECK_CALLS: u32 = 4096;

/// Selects the calls in which an idle port checks its interface.
#[derive(Debug, Default)]
pub(crate) struct AliveChecks {
    /// Time of the last check, in nanoseconds.
    pub(crate) last: u64,
    calls: u32,
}

impl AliveChecks {
    /// Returns whether this call should check.
    #[inline]
    pub(crate) fn are_due(&mut self, now: Nanos) -> bool {
        self.calls += 1;
        let since = now.as_nanos().wrapping_sub(self.last);
        let due = since >= CHECK_EVERY || self.calls >= CHECK_CALLS;
        if due {
            self.last = now.as_nanos();
            self.calls = 0;
        }
        due
    }
}

/// One of a socket's two buffers.
#[derive(Clone, Copy)]
pub(crate) enum Buffer {
    Receive,
    Send,
}

/// Requests a socket buffer of `bytes`, beyond the system's limit if permitted. Returns the actual
/// size.
pub(crate) fn enlarge(socket: BorrowedFd<'_>, buffer: Buffer, bytes: usize) -> io::Result<usize> {
    let (force, plain) = match buffer {
        Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    };
    // The kernel doubles the value for its bookkeeping.
    let requested = libc::c_int::try_from(bytes / 2).unwrap_or(libc::c_int::MAX / 2);
    if set_option(socket, libc::SOL_SOCKET, force, &requested).is_err() {
        set_option(socket, libc::SOL_SOCKET, plain, &requested)?;
    }
    let got: libc::c_int = get_option(socket, libc::SOL_SOCKET, plain)?;
    Ok(usize::try_from(got).unwrap_or(0))
}

/// Returns whether an error means that the interface is gone or down.
pub(crate) fn says_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV)
    )
}

/// Returns the port error for a failed system call.
pub(crate) fn failure(port: &str, action: &'static str, source: io::Error) -> PortError {
    let port = port.to_owned();
    if says_gone(&source) {
        return PortError::Gone { port, source };
    }
    PortError::of(port, action, source)
}

/// Queries the kernel about an interface by name.
pub(crate) fn ask_interface(
    socket: BorrowedFd<'_>,
    name: &str,
    question: libc::c_ulong,
) -> io::Result<libc::ifreq> {
    let mut request = ifreq::request(name)?;
    // SAFETY: the answers to these requests are inside the `ifreq`.
    unsafe { ifreq::ask(socket, question, &mut request) }?;
    Ok(request)
}
