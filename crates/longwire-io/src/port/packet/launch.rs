//! Launch times: frames are passed early to a queueing discipline or device that holds each until
//! its time (SO_TXTIME).
//!
//! `etf` holds frames until shortly before their time, and with `offload` the device sends them on
//! time; `fq` holds them with a kernel timer. This follows tc-etf(8), tc-fq(8) and
//! linux/net_tstamp.h. The test kernel had neither discipline, so tests cover the selection, and
//! that frames with a launch time pass, but not the precision of launch times.
//!
//! A frame's control message holds its launch time and the request for a send stamp.

use std::io;
use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;
use nix::time::ClockId;

use super::sent::{DeviceClock, DeviceStamping, SendErrorQueue, TIMESTAMPING};
use crate::clock::{ahead_of_monotonic, monotonic_now};
use crate::net::ethtool::Ethtool;
use crate::net::netlink_message::{attribute, number_at};
use crate::net::qdisc::Qdisc;
use crate::port::options::LaunchMode;
use crate::port::socket::set_option;
use crate::port::{SendStamp, StampedBy};

/// Maximum lead of a push over its release: longer than a late wake-up, shorter than the second
/// that devices can look ahead.
pub(super) const LEAD: Nanos = Nanos::from_millis(1);
/// Minimum launch delay of a late frame, because `etf` drops frames that it cannot send in time.
const SHORTEST: Nanos = Nanos::from_micros(50);
/// Interval between clock comparisons.
const COMPARE_EVERY: Nanos = Nanos::from_secs(1);

/// `SO_TXTIME` and `SCM_TXTIME`, which libc does not define on all targets.
pub(super) const TXTIME: libc::c_int = 61;

/// `TCA_ETF_PARMS`: `struct tc_etf_qopt` with delta, clock and flags.
const ETF_PARAMETERS: u16 = 1;
const ETF_DEADLINE: u32 = 1;
const ETF_OFFLOAD: u32 = 1 << 1;

/// Launch-time scheduling on a device: by the kernel's queueing discipline or by the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHolder {
    /// Clock of the launch times.
    pub(super) clock: libc::clockid_t,
    /// Whether the device, rather than the kernel, sends on time.
    pub(super) device: bool,
}

impl FrameHolder {
    /// Returns the frame holder of a device with these disciplines, if all queues have the same
    /// one.
    pub(super) fn of(qdiscs: &[Qdisc]) -> Option<FrameHolder> {
        let root = qdiscs.iter().find(|qdisc| qdisc.is_root())?;
        if root.kind != "mq" {
            return FrameHolder::of_one(root);
        }
        let mut leaves = qdiscs.iter().filter(|qdisc| qdisc.is_below(root));
        let first = FrameHolder::of_one(leaves.next()?)?;
        leaves
            .all(|leaf| FrameHolder::of_one(leaf) == Some(first))
            .then_some(first)
    }

    fn of_one(qdisc: &Qdisc) -> Option<FrameHolder> {
        match qdisc.kind.as_str() {
            "fq" => Some(FrameHolder {
                clock: libc::CLOCK_MONOTONIC,
                device: false,
            }),
            "etf" => {
                let parameters = attribute(&qdisc.options, ETF_PARAMETERS)?;
                let flags = number_at(parameters, 8)?;
                // Deadline mode is unsuitable: frames may leave at any time before their launch
                // time.
                (flags & ETF_DEADLINE == 0).then_some(FrameHolder {
                    clock: number_at(parameters, 4)?.cast_signed(),
                    device: flags & ETF_OFFLOAD != 0,
                })
            }
            _ => None,
        }
    }

    /// Returns whether `wanted` permits this holder.
    pub(super) fn is_permitted(self, wanted: LaunchMode) -> bool {
        match wanted {
            LaunchMode::Off => false,
            LaunchMode::Device => self.device,
            LaunchMode::Queue => true,
        }
    }
}

/// Launch times for a socket's frames.
pub(super) struct LaunchTimes {
    clock: ClockId,
    /// Lead of the holder's clock over the run's clock, in nanoseconds.
    ahead: i64,
    compared: Nanos,
}

impl LaunchTimes {
    /// Configures the clock of the socket's launch times.
    pub(super) fn new(socket: BorrowedFd<'_>, holder: FrameHolder) -> io::Result<LaunchTimes> {
        let times = libc::sock_txtime {
            clockid: holder.clock,
            flags: libc::SOF_TXTIME_REPORT_ERRORS,
        };
        set_option(socket, libc::SOL_SOCKET, TXTIME, &times)?;
        let clock = ClockId::from_raw(holder.clock);
        Ok(LaunchTimes {
            clock,
            ahead: ahead_of_monotonic(clock),
            compared: Nanos::ZERO,
        })
    }

    /// Returns a frame's launch time, on the holder's clock.
    pub(super) fn at(&mut self, release: Nanos) -> Nanos {
        let now = monotonic_now();
        if now.saturating_sub(self.compared) >= COMPARE_EVERY {
            self.compared = now;
            self.ahead = ahead_of_monotonic(self.clock);
        }
        let at = release.max(now.saturating_add(SHORTEST));
        Nanos::from_nanos(at.as_nanos().saturating_add_signed(self.ahead))
    }
}

/// One part of a control message: a header and a number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    header: libc::cmsghdr,
    data: u64,
}

/// The control message of one frame.
#[derive(Clone, Copy)]
pub(super) struct Control {
    parts: [Part; 2],
    used: usize,
}

impl Control {
    /// Creates a message that requests the stamps named by the flags (`SOF_TIMESTAMPING_TX_…`), and
    /// holds the frame until `launch`, on the socket's launch clock.
    pub(super) fn new(stamp: Option<u32>, launch: Option<Nanos>) -> Control {
        let mut control = Control {
            // SAFETY: C structures of integers, for which zeros are valid.
            parts: unsafe { std::mem::zeroed() },
            used: 0,
        };
        if let Some(flags) = stamp {
            let [a, b, c, d] = flags.to_ne_bytes();
            let data = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
            control.add(TIMESTAMPING, data, size_of::<u32>());
        }
        if let Some(at) = launch {
            control.add(TXTIME, at.as_nanos(), size_of::<u64>());
        }
        control
    }

    fn add(&mut self, kind: libc::c_int, data: u64, len: usize) {
        let part = &mut self.parts[self.used];
        part.header.cmsg_len = (std::mem::offset_of!(Part, data) + len) as _;
        part.header.cmsg_level = libc::SOL_SOCKET;
        part.header.cmsg_type = kind;
        part.data = data;
        self.used += 1;
    }

    /// Attaches the control message to a message. The control message must not move while the
    /// message is in use.
    pub(super) fn go_with(&mut self, message: &mut libc::msghdr) {
        message.msg_control = match self.used {
            0 => std::ptr::null_mut(),
            _ => self.parts.as_mut_ptr().cast(),
        };
        message.msg_controllen = (self.used * size_of::<Part>()) as _;
    }
}

/// Send stamps and launch times for one socket.
pub(super) struct SocketTimestamps {
    /// Access to the interface's namespace; taken once the device stamps.
    ethtool: Option<Ethtool>,
    sent: Option<SendErrorQueue>,
    launch: Option<LaunchTimes>,
    /// Turns the device's stamps off again when dropped.
    _device: Option<DeviceStamping>,
}

impl SocketTimestamps {
    /// Creates the state for an interface in the calling thread's namespace.
    pub(super) fn new() -> SocketTimestamps {
        SocketTimestamps {
            ethtool: Ethtool::open().ok(),
            sent: None,
            launch: None,
            _device: None,
        }
    }

    /// Makes the holder keep this socket's frames until their release, from now on.
    pub(super) fn launch(&mut self, socket: BorrowedFd<'_>, holder: FrameHolder) -> io::Result<()> {
        self.launch = Some(LaunchTimes::new(socket, holder)?);
        self.sent = Some(SendErrorQueue::new(socket)?);
        Ok(())
    }

    /// Returns the maximum lead of a push over its release.
    pub(super) fn lead(&self) -> Option<Nanos> {
        self.launch.as_ref().map(|_| LEAD)
    }

    /// Enables stamps for frames that request them, by the device if possible and permitted.
    /// Returns their source; `None` if the kernel does not stamp either.
    pub(super) fn stamp(&mut self, socket: BorrowedFd<'_>, interface: &str) -> Option<StampedBy> {
        let device = self
            .ethtool
            .take()
            .and_then(|ethtool| DeviceStamping::start(ethtool, interface));
        let clock = device
            .as_ref()
            .and_then(|device| DeviceClock::open(device.clock()).ok());
        if clock.is_some() {
            self._device = device;
        }
        if self.sent.is_none() {
            self.sent = SendErrorQueue::new(socket).ok();
        }
        let sent = self.sent.as_mut()?;
        sent.start(clock).ok()?;
        Some(sent.by())
    }

    /// Returns a frame's control message. `stamp` requests a stamp.
    #[inline]
    pub(super) fn control(&mut self, release: Nanos, stamp: bool) -> Control {
        let flags = match (&self.sent, stamp) {
            (Some(sent), true) => Some(sent.flags()),
            _ => None,
        };
        Control::new(flags, self.launch.as_mut().map(|launch| launch.at(release)))
    }

    /// Records that the kernel has numbered a stamped frame. `release` is `None` if the frame was
    /// not sent.
    pub(super) fn numbered(&mut self, release: Option<Nanos>) {
        if let Some(sent) = &mut self.sent {
            sent.numbered(release);
        }
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut dyn FnMut(SendStamp)) {
        if let Some(sent) = &mut self.sent {
            sent.drain(take);
        }
    }

    /// Returns the number of frames dropped for being late.
    pub(super) fn missed(&mut self) -> u64 {
        match (&mut self.sent, &self.launch) {
            (Some(sent), Some(_)) => sent.missed(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(kind: &str, handle: u32, parent: u32) -> Qdisc {
        Qdisc {
            kind: kind.to_owned(),
            handle,
            parent,
            options: Vec::new(),
        }
    }

    /// Returns a discipline as created by `tc qdisc add … etf clockid CLOCK_TAI delta 300000`.
    fn etf(handle: u32, parent: u32, flags: u32) -> Qdisc {
        let mut options = Vec::new();
        options.extend([16u16, ETF_PARAMETERS].map(u16::to_ne_bytes).concat());
        let parameters = [300_000u32, libc::CLOCK_TAI.cast_unsigned(), flags];
        options.extend(parameters.map(u32::to_ne_bytes).concat());
        Qdisc {
            options,
            ..qdisc("etf", handle, parent)
        }
    }

    fn tai(device: bool) -> FrameHolder {
        FrameHolder {
            clock: libc::CLOCK_TAI,
            device,
        }
    }

    const ROOT: u32 = u32::MAX;

    #[test]
    fn disciplines_that_hold_frames_are_found() {
        let fq = FrameHolder {
            clock: libc::CLOCK_MONOTONIC,
            device: false,
        };
        let at_root = |qdisc| FrameHolder::of(&[qdisc]);
        assert_eq!(at_root(etf(1 << 16, ROOT, ETF_OFFLOAD)), Some(tai(true)));
        assert_eq!(at_root(etf(1 << 16, ROOT, 0)), Some(tai(false)));
        assert_eq!(at_root(etf(1 << 16, ROOT, ETF_DEADLINE)), None);
        assert_eq!(at_root(qdisc("fq", 1 << 16, ROOT)), Some(fq));
        assert_eq!(at_root(qdisc("fq_codel", 0, ROOT)), None);
        assert_eq!(at_root(qdisc("etf", 0, ROOT)), None, "without parameters");
        assert_eq!(FrameHolder::of(&[]), None);
    }

    #[test]
    fn all_queues_must_hold_frames_alike() {
        let mq = qdisc("mq", 8 << 16, ROOT);
        let below = |number: u32| 8 << 16 | number;
        let fq = |number| qdisc("fq", 0, below(number));
        let alike = [mq.clone(), fq(1), fq(2)];
        assert!(FrameHolder::of(&alike).is_some_and(|holder| !holder.device));
        let mixed = [mq.clone(), fq(1), etf(0, below(2), 0)];
        assert_eq!(FrameHolder::of(&mixed), None);
        assert_eq!(FrameHolder::of(&[mq, qdisc("fq", 0, 9 << 16 | 1)]), None);
    }

    #[test]
    fn only_what_was_asked_for_is_used() {
        let used = |wanted| [true, false].map(|device| tai(device).is_permitted(wanted));
        assert_eq!(used(LaunchMode::Off), [false, false]);
        assert_eq!(used(LaunchMode::Device), [true, false]);
        assert_eq!(used(LaunchMode::Queue), [true, true]);
    }
}
