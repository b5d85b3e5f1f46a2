//! TAP devices through their control files, and persistent TAP devices, which exist without an open
//! descriptor and can therefore be configured before a port opens them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{NetError, ifreq};

nix::ioctl_write_int_bad!(
    /// Keeps the device when the control file is closed.
    set_persist,
    libc::TUNSETPERSIST
);

/// Opens a non-blocking control file.
pub(crate) fn control_file() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

/// Attaches a control file to a device, which is created if necessary. Frames have virtio-net
/// headers.
pub(crate) fn attach(file: &File, name: &str) -> io::Result<()> {
    let mut request = ifreq::request(name)?;
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: this request takes flags.
    unsafe { ifreq::ask(file.as_fd(), libc::TUNSETIFF, &mut request) }
}

/// Creates a TAP device that lives as long as the calling thread's namespace.
///
/// # Errors
/// `/dev/net/tun` is missing or inaccessible to this user, or the name belongs to a TAP device in
/// use or to another kind of device.
pub fn create_persistent(name: &str) -> Result<(), NetError> {
    let file = control_file().map_err(|e| NetError::system("open", "/dev/net/tun", e))?;
    let persistent = attach(&file, name).and_then(|()| {
        // SAFETY: the descriptor is a TUN control file; the argument is a number.
        Ok(unsafe { set_persist(file.as_raw_fd(), 1) }?)
    });
    let failed = |error| NetError::system("make", format!("TAP '{name}'"), error);
    persistent.map(drop).map_err(failed)
}
