//! Send stamps from packet sockets. The kernel puts them on the socket's error queue, numbered by
//! request.
//!
//! Devices that stamp frames as they go onto the wire have a separate clock, which is compared with
//! the system's clock. No such device was available, so this follows the kernel's documentation
//! (Documentation/networking/timestamping.rst, linux/net_tstamp.h, and linux/ptp_clock.h on clocks
//! with descriptors). Tests cover only the detection of devices without stamps and the comparison
//! of synthetic readings.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use longwire_engine::Nanos;
use nix::time::ClockId;

use crate::clock::{ClockReading, ahead_of_monotonic};
use crate::net::ethtool::Ethtool;
use crate::port::socket::set_option;
use crate::port::{SendStamp, StampedBy};
use crate::rights;

/// Maximum number of frames that wait for a stamp; if there are more, the oldest are dropped.
const WAITING_MAX: usize = 8192;

/// Words for a stamp's control messages: three times, of which the first is the kernel's and the
/// last the device's, followed by the number.
const CONTROL_WORDS: usize = 32;

/// `SO_TIMESTAMPING`, which is also the type of its control messages.
pub(super) const TIMESTAMPING: libc::c_int = 37;
/// `SO_EE_ORIGIN_TXTIME`: a frame was not sent because its time had passed.
const ORIGIN_LAUNCH: u8 = 6;

/// A sending socket's error queue.
pub(super) struct SendErrorQueue {
    socket: OwnedFd,
    /// Reads the device's clock, if the device stamps.
    device: Option<DeviceClock>,
    /// Releases of stamped frames in transit (`None` if unsent), numbered from `first`.
    waiting: VecDeque<Option<Nanos>>,
    first: u32,
    received: VecDeque<SendStamp>,
    missed: u64,
}

impl SendErrorQueue {
    pub(super) fn new(socket: BorrowedFd<'_>) -> io::Result<SendErrorQueue> {
        Ok(SendErrorQueue {
            socket: socket.try_clone_to_owned()?,
            device: None,
            waiting: VecDeque::new(),
            first: 0,
            received: VecDeque::new(),
            missed: 0,
        })
    }

    /// Enables send stamps on the socket, by the device's clock if given, otherwise by the
    /// kernel's.
    pub(super) fn start(&mut self, device: Option<DeviceClock>) -> io::Result<()> {
        let source = match device {
            Some(_) => libc::SOF_TIMESTAMPING_RAW_HARDWARE,
            None => libc::SOF_TIMESTAMPING_SOFTWARE,
        };
        let flags = source | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        self.device = device;
        set_option(self.socket.as_fd(), libc::SOL_SOCKET, TIMESTAMPING, &flags)
    }

    /// Returns the source of the stamps.
    pub(super) fn by(&self) -> StampedBy {
        match self.device {
            Some(_) => StampedBy::Device,
            None => StampedBy::Kernel,
        }
    }

    /// Returns the flags for a frame's control message.
    pub(super) fn flags(&self) -> u32 {
        match self.device {
            Some(_) => libc::SOF_TIMESTAMPING_TX_HARDWARE,
            None => libc::SOF_TIMESTAMPING_TX_SOFTWARE,
        }
    }

    /// Records that the kernel has numbered a stamped frame.
    pub(super) fn numbered(&mut self, release: Option<Nanos>) {
        if self.waiting.len() == WAITING_MAX {
            self.collect();
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.waiting.push_back(release);
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut dyn FnMut(SendStamp)) {
        self.collect();
        self.received.drain(..).for_each(take);
    }

    /// Returns the number of frames not sent because their time had passed.
    pub(super) fn missed(&mut self) -> u64 {
        self.collect();
        self.missed
    }

    /// Reads the error queue.
    fn collect(&mut self) {
        if let Some(device) = &mut self.device {
            device.compare();
        }
        let mut wall_ahead = None;
        while let Ok(Some(found)) = receive(self.socket.as_fd()) {
            if found.origin == ORIGIN_LAUNCH {
                self.missed += 1;
                continue;
            }
            let left = match &self.device {
                Some(device) if found.device > 0 => device.monotonic(found.device),
                None if found.kernel > 0 => {
                    let ahead = *wall_ahead
                        .get_or_insert_with(|| ahead_of_monotonic(ClockId::CLOCK_REALTIME));
                    found.kernel.saturating_add_signed(ahead.saturating_neg())
                }
                _ => continue,
            };
            let Some(release) = self.release_of(found.number) else {
                continue;
            };
            if self.received.len() == WAITING_MAX {
                self.received.pop_front();
            }
            self.received.push_back(SendStamp {
                release,
                left: Nanos::from_nanos(left),
                by: self.by(),
            });
        }
    }

    /// Returns the release of the frame with this number. Discards earlier frames, whose stamps
    /// will not follow.
    fn release_of(&mut self, number: u32) -> Option<Nanos> {
        let place = number.wrapping_sub(self.first) as usize;
        if place >= self.waiting.len() {
            return None;
        }
        self.first = number.wrapping_add(1);
        self.waiting.drain(..place);
        self.waiting.pop_front().flatten()
    }
}

/// A stamp from the error queue.
#[derive(Default)]
struct StampMessage {
    origin: u8,
    number: u32,
    kernel: u64,
    device: u64,
}

/// Receives the next stamp, if any.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<StampMessage>> {
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which
    // zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message has no parts, and its room for control messages lives during the call.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) } < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EAGAIN) => Ok(None),
            _ => Err(error),
        };
    }
    let mut found = StampMessage::default();
    // SAFETY: the kernel filled in `message`; the pointer is null or points to a header inside
    // `control`.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: the pointer is not null, so it points to a whole header, followed by data of its
        // type, which the kernel wrote.
        unsafe { read_part(&*next, libc::CMSG_DATA(next), &mut found) };
        // SAFETY: as for the first.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok(Some(found))
}

/// Reads one control message.
///
/// # Safety
/// `data` must have the type that the header declares.
unsafe fn read_part(header: &libc::cmsghdr, data: *const u8, found: &mut StampMessage) {
    match (header.cmsg_level, header.cmsg_type) {
        (libc::SOL_SOCKET, TIMESTAMPING) => {
            // SAFETY: `struct scm_timestamping` is an array of three times.
            let times = unsafe { data.cast::<[libc::timespec; 3]>().read_unaligned() };
            found.kernel = nanos(times[0]);
            found.device = nanos(times[2]);
        }
        (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => {
            // SAFETY: the kernel sends this structure with every stamp.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            found.origin = error.ee_origin;
            found.number = error.ee_data;
        }
        _ => {}
    }
}

fn nanos(time: libc::timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// `CLOCKFD` of the kernel's dynamic clocks.
const CLOCK_BEHIND_DESCRIPTOR: libc::clockid_t = 3;

/// A device's clock, compared with the run's clock at intervals.
pub(super) struct DeviceClock {
    /// Kept open, because the clock's number refers to it.
    _file: File,
    clock: ClockId,
    comparison: Comparison,
}

impl DeviceClock {
    /// Opens the clock with this number, `/dev/ptpN`.
    pub(super) fn open(number: u32) -> io::Result<DeviceClock> {
        let file = File::open(format!("/dev/ptp{number}"))?;
        let clock = ClockId::from_raw((!file.as_raw_fd() << 3) | CLOCK_BEHIND_DESCRIPTOR);
        // Unlike the reading below, this wrapper reports errors.
        nix::time::clock_gettime(clock)?;
        let reading = Point::of(ClockReading::new(clock));
        Ok(DeviceClock {
            _file: file,
            clock,
            comparison: Comparison {
                before: reading,
                now: reading,
            },
        })
    }

    /// Reads both clocks again.
    pub(super) fn compare(&mut self) {
        self.comparison = Comparison {
            before: self.comparison.now,
            now: Point::of(ClockReading::new(self.clock)),
        };
    }

    /// Converts a time of the device's clock to the run's clock.
    pub(super) fn monotonic(&self, device: u64) -> u64 {
        self.comparison.monotonic(device)
    }
}

/// An instant on the device's clock, and that clock's lead over the run's clock.
#[derive(Clone, Copy, Debug)]
struct Point {
    device: u64,
    ahead: i64,
}

impl Point {
    fn of(reading: ClockReading) -> Point {
        Point {
            device: reading.other,
            ahead: reading.offset(),
        }
    }
}

/// The last two readings of both clocks. A device's clock may be free-running, off by tens of ppm,
/// so its lead is interpolated linearly between the readings.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    before: Point,
    now: Point,
}

impl Comparison {
    fn monotonic(&self, device: u64) -> u64 {
        let passed = i128::from(self.now.device) - i128::from(self.before.device);
        let gained = i128::from(self.now.ahead) - i128::from(self.before.ahead);
        let back = i128::from(self.now.device) - i128::from(device);
        let correction = match passed {
            0 => 0,
            passed => gained * back / passed,
        };
        let ahead = i128::from(self.now.ahead) - correction;
        u64::try_from(i128::from(device) - ahead).unwrap_or(0)
    }
}

/// A device configured to stamp. Drop restores its previous configuration.
pub(super) struct DeviceStamping {
    ethtool: Ethtool,
    interface: String,
    clock: u32,
    before: libc::hwtstamp_config,
}

impl DeviceStamping {
    /// Configures a device to stamp the frames that it sends; `None` if it cannot or the process is
    /// not permitted to.
    pub(super) fn start(ethtool: Ethtool, interface: &str) -> Option<DeviceStamping> {
        let stamps = ethtool.stamps(interface).ok()?;
        let clock = stamps.clock.filter(|_| stamps.sends)?;
        let before = ethtool.stamping(interface).ok()?;
        let on = libc::hwtstamp_config {
            tx_type: libc::HWTSTAMP_TX_ON.cast_signed(),
            ..before
        };
        rights::will_restore();
        ethtool.set_stamping(interface, on).ok()?;
        Some(DeviceStamping {
            ethtool,
            interface: interface.to_owned(),
            clock,
            before,
        })
    }

    /// Returns the number of the device's clock.
    pub(super) fn clock(&self) -> u32 {
        self.clock
    }
}

impl Drop for DeviceStamping {
    fn drop(&mut self) {
        // An error means that the interface is gone, and the setting with it.
        let _ = self.ethtool.set_stamping(&self.interface, self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    #[test]
    fn a_device_without_a_clock_is_an_error() {
        assert!(DeviceClock::open(u32::MAX).is_err());
    }

    #[test]
    fn a_steady_clock_and_one_that_gains_are_followed_between_two_looks() {
        // The device's clock is this many ppm fast and is read every 100 ms.
        for (ppm, slack) in [(0, 0), (50, 1)] {
            let device = |monotonic: u64| DAY + monotonic + monotonic * ppm / 1_000_000;
            let look = |monotonic: u64| Point {
                device: device(monotonic),
                ahead: (device(monotonic) - monotonic).cast_signed(),
            };
            let comparison = Comparison {
                before: look(1_000_000_000),
                now: look(1_100_000_000),
            };
            for monotonic in [1_000_000_000, 1_030_000_000, 1_099_999_000] {
                let found = comparison.monotonic(device(monotonic));
                assert!(found.abs_diff(monotonic) <= slack, "{found} {monotonic}");
            }
        }
    }
}
