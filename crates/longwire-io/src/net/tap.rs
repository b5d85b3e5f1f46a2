//! Persistent TAP devices: they exist without an open descriptor, so that they can be
//! configured before a port opens them.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

use super::NetError;

mod control {
    nix::ioctl_write_ptr_bad!(
        /// Attaches a control file to a device, which is created if necessary.
        set_iff,
        libc::TUNSETIFF,
        libc::ifreq
    );
    nix::ioctl_write_int_bad!(
        /// Keeps the device when the control file is closed.
        set_persist,
        libc::TUNSETPERSIST
    );
}

/// Creates a TAP device that lives as long as the calling thread's namespace.
///
/// # Errors
///
/// If `/dev/net/tun` is missing or not open to this user, or the name is taken.
pub fn create_persistent(name: &str) -> Result<(), NetError> {
    let failed = |error: std::io::Error| NetError::system("make", format!("TAP '{name}'"), error);
    let tun = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .map_err(|e| NetError::system("open", "/dev/net/tun", e))?;
    // SAFETY: `ifreq` is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the descriptor is a TUN control file and the request is an
    // initialised `ifreq` that outlives the call.
    unsafe { control::set_iff(tun.as_raw_fd(), &raw const request) }
        .map_err(|e| failed(e.into()))?;
    // SAFETY: the descriptor is a TUN control file; the argument is a number.
    unsafe { control::set_persist(tun.as_raw_fd(), 1) }.map_err(|e| failed(e.into()))?;
    Ok(())
}
