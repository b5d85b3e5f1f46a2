//! A port's TAP device: opening, settings, counters.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use crate::net::interface::Interface;
use crate::net::netlink::Netlink;
use crate::net::record::{ChangedSettings, PortRecord, Undo};
use crate::net::{NetError, link, tap};
use crate::port::lock::{self, PortLock};
use crate::port::{PortError, options, vnet};
use crate::sync::locked;

mod control {
    nix::ioctl_write_ptr_bad!(
        /// Sets the length of the header before each frame.
        set_header_len,
        libc::TUNSETVNETHDRSZ,
        libc::c_int
    );
    nix::ioctl_write_int_bad!(
        /// Sets the offloads that frames read from the device may have.
        set_offload,
        libc::TUNSETOFFLOAD
    );
    nix::ioctl_write_ptr_bad!(
        /// Switches the device's carrier.
        set_carrier,
        libc::TUNSETCARRIER,
        libc::c_int
    );
}

/// Minimum queue length of the device in frames: 20 ms at 500,000 frames/s. The kernel's default of
/// 500 holds 1 ms.
const QUEUE_LEN: u32 = 10_000;

/// Offloads that a reader of super-packets supports (linux/if_tun.h): checksums, TCP segments over
/// IPv4 and IPv6, and CWR on the first segment only.
const OFFLOAD_TCP: u32 = 0x01 | 0x02 | 0x04 | 0x08;
/// UDP segments over IPv4 and IPv6, since Linux 6.2.
const OFFLOAD_UDP: u32 = 0x20 | 0x40;

/// An attached TAP device. Drop restores its settings; after SIGKILL, the next port to be opened
/// restores them. A device created by the port is removed with it.
pub(super) struct Device {
    /// Changes to a device that already existed. Dropped first, while the device is attached.
    changed: Option<ChangedSettings>,
    name: String,
    file: File,
    counters: Option<File>,
    without_carrier: Mutex<DropsWithoutCarrier>,
    _lock: Option<PortLock>,
}

/// Frames for the reader that the kernel dropped without a carrier.
#[derive(Clone, Copy, Default)]
struct DropsWithoutCarrier {
    /// Number of frames dropped until the carrier last returned.
    before: u64,
    /// Total drops when the carrier was removed; `None` while there is a carrier.
    since: Option<u64>,
}

impl Device {
    /// Attaches to the device `name`, creating it if necessary, and brings it up. Appends
    /// its actions to `notes`.
    pub(super) fn open(
        name: &str,
        options: &options::OpenOptions,
        notes: &mut Vec<String>,
    ) -> Result<Device, PortError> {
        let failed = |action, source: io::Error| failed(name, action, source);
        check_name(name)?;
        let netlink = Netlink::route().map_err(|error| error.source);
        let mut netlink = netlink.map_err(|e| failed("opening a socket", e))?;
        let before = Interface::find(name).ok();
        let file = tap::control_file().map_err(|error| no_control_file(name, error))?;
        tap::attach(&file, name).map_err(|error| not_attached(name, error))?;
        let mut device = Device {
            changed: None,
            name: name.to_owned(),
            file,
            counters: None,
            without_carrier: Mutex::default(),
            _lock: None,
        };
        notes.push(match &before {
            Some(_) => format!("using the existing TAP device {name}"),
            None => format!("created the TAP device {name}, removed when the port closes"),
        });
        device
            .set_header_len()
            .map_err(|e| failed("requesting virtio-net headers", e))?;
        device.set_offloads(options.offloads, notes)?;
        if let Ok(interface) = Interface::find(name) {
            device._lock = PortLock::of_tap(interface.index);
            device.changed = before.as_ref().map(|before| record(before, &interface));
        }
        raise(&mut netlink, name, before.as_ref())
            .map_err(|e| failed("bringing the device up", e.into_io()))?;
        // The file permanently refers to the network namespace of the opening thread.
        device.counters = File::open("/proc/thread-self/net/dev").ok();
        Ok(device)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Switches the device's carrier.
    pub(super) fn set_carrier(&self, up: bool) -> io::Result<()> {
        let mut without = locked(&self.without_carrier);
        if !up {
            without.since.get_or_insert(self.all_drops().to_reader);
        }
        let carrier = libc::c_int::from(up);
        // SAFETY: the descriptor is a TUN control file; the kernel reads one int, which
        // outlives the call.
        unsafe { control::set_carrier(self.file.as_raw_fd(), &raw const carrier) }?;
        if up && let Some(since) = without.since.take() {
            without.before += self.all_drops().to_reader.saturating_sub(since);
        }
        Ok(())
    }

    /// Returns the device's losses since its creation: frames to this port dropped at a full queue,
    /// and frames from this port that the kernel rejected.
    pub(super) fn drops(&self) -> Drops {
        let without = *locked(&self.without_carrier);
        let mut drops = self.all_drops();
        let now = without
            .since
            .map_or(0, |since| drops.to_reader.saturating_sub(since));
        drops.to_reader = drops.to_reader.saturating_sub(without.before + now);
        drops
    }

    /// Returns the losses, including frames sent to the device without a carrier.
    fn all_drops(&self) -> Drops {
        let Some(file) = &self.counters else {
            return Drops::default();
        };
        let mut text = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = file.read_at(&mut piece, text.len() as u64) {
            text.extend_from_slice(&piece[..count]);
        }
        Drops::parse(&String::from_utf8_lossy(&text), &self.name).unwrap_or_default()
    }

    fn set_header_len(&self) -> io::Result<()> {
        let len = vnet::LEN as libc::c_int;
        // SAFETY: the descriptor is a TUN control file; the kernel reads one
        // int, which outlives the call.
        unsafe { control::set_header_len(self.file.as_raw_fd(), &raw const len) }?;
        Ok(())
    }

    fn set_offloads(&self, wanted: bool, notes: &mut Vec<String>) -> Result<(), PortError> {
        let set = |bits: u32| {
            // SAFETY: the descriptor is a TUN control file; the argument is a
            // number.
            unsafe { control::set_offload(self.file.as_raw_fd(), bits.cast_signed()) }
        };
        let mut result = set(if wanted { OFFLOAD_TCP | OFFLOAD_UDP } else { 0 });
        if wanted && result == Err(nix::errno::Errno::EINVAL) {
            notes.push("this kernel has no UDP segmentation offload for TAP devices".into());
            result = set(OFFLOAD_TCP);
        }
        result.map_err(|error| failed(&self.name, "setting offloads", error.into()))?;
        Ok(())
    }
}

/// Records how to restore the changes to a device that already existed.
fn record(before: &Interface, now: &Interface) -> ChangedSettings {
    let name = &now.name;
    let mut changing = PortRecord::begin(now.index, name, false);
    if !before.up {
        changing.note(name, Undo::Down);
    }
    if before.tx_queue_len < QUEUE_LEN {
        changing.note(name, Undo::QueueLen(before.tx_queue_len.cast_signed()));
    }
    changing.end(name)
}

/// Frames that the device counts as dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drops {
    /// Frames for this reader.
    pub(super) to_reader: u64,
    /// Frames from this writer.
    pub(super) from_writer: u64,
}

impl Drops {
    /// Parses the device's line in /proc/net/dev: eight counters of frames received from
    /// it, then eight of frames sent to it; the fourth of each counts drops.
    fn parse(text: &str, name: &str) -> Option<Drops> {
        let counters = text.lines().find_map(|line| {
            let (device, counters) = line.split_once(':')?;
            (device.trim() == name).then_some(counters)
        })?;
        let mut fields = counters.split_ascii_whitespace();
        let from_writer = fields.nth(3)?.parse().ok()?;
        Some(Drops {
            to_reader: fields.nth(7)?.parse().ok()?,
            from_writer,
        })
    }
}

/// Brings a device up with a queue of at least [`QUEUE_LEN`].
fn raise(netlink: &mut Netlink, name: &str, before: Option<&Interface>) -> Result<(), NetError> {
    // Resizing fails if memory is short; the shorter queue also works.
    if before.is_none_or(|before| before.tx_queue_len < QUEUE_LEN) {
        let _ = link::set_tx_queue_len(netlink, name, QUEUE_LEN);
    }
    link::set_up_by(netlink, name, true)
}

/// Rejects text that cannot be a device name.
fn check_name(text: &str) -> Result<(), PortError> {
    let bad_name = text.contains(['/', ':']) || text.chars().any(char::is_whitespace);
    if text.is_empty() || text.len() >= libc::IFNAMSIZ || bad_name {
        return Err(PortError::unsupported(
            format!("tap:{text}"),
            "not a valid device name: 1 to 15 characters, without spaces, ':' or '/'",
        ));
    }
    Ok(())
}

fn no_control_file(name: &str, error: io::Error) -> PortError {
    if error.kind() != io::ErrorKind::NotFound {
        return failed(name, "opening /dev/net/tun", error);
    }
    PortError::unsupported(
        format!("tap:{name}"),
        "/dev/net/tun is missing; load the module with: modprobe tun; for a container, --device \
         /dev/net/tun",
    )
}

fn not_attached(name: &str, error: io::Error) -> PortError {
    let reason = match error.raw_os_error() {
        Some(libc::EBUSY) => format!("{} has the device open", lock::user_of_tap(name)),
        Some(libc::EINVAL | libc::EEXIST) => {
            "a device with that name exists, but is not a single-queue TAP device".to_owned()
        }
        _ => return failed(name, "attaching to the TAP device", error),
    };
    PortError::unsupported(format!("tap:{name}"), reason)
}

/// Returns the error of a failed system call on the device.
pub(super) fn failed(name: &str, action: &'static str, source: io::Error) -> PortError {
    PortError::of(format!("tap:{name}"), action, source)
}

#[cfg(test)]
mod tests {
    use super::Drops;

    #[test]
    fn drops_are_found_in_the_kernels_table() {
        let text = "Inter-|   Receive                    |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes ...\n  \
            lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            tap10: 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        let drops = Drops::parse(text, "tap10").unwrap();
        assert_eq!((drops.from_writer, drops.to_reader), (24, 32));
        assert_eq!(Drops::parse(text, "tap1"), None);
        assert_eq!(Drops::parse("tap1: 1 2", "tap1"), None);
    }
}
