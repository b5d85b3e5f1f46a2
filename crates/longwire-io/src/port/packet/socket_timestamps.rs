//! Send stamps and launch times of a packet socket's frames.

use std::io;
use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::super::{SendStamp, StampedBy};
use super::control::Control;
use super::device_clock::DeviceClock;
use super::hardware::DeviceStamping;
use super::launch::{FrameHolder, LEAD, LaunchTimes};
use super::sent::SendErrorQueue;
use crate::net::ethtool::Ethtool;

/// Send stamps and launch times of one socket.
pub(super) struct SocketTimestamps {
    /// Of the interface's namespace; gone once the device stamps.
    ethtool: Option<Ethtool>,
    sent: Option<SendErrorQueue>,
    launch: Option<LaunchTimes>,
    /// Switches the device's stamps off again when dropped.
    _device: Option<DeviceStamping>,
}

impl SocketTimestamps {
    /// Creates the state for an interface of the calling thread's namespace.
    pub(super) fn new() -> SocketTimestamps {
        SocketTimestamps {
            ethtool: Ethtool::open().ok(),
            sent: None,
            launch: None,
            _device: None,
        }
    }

    /// Holds this socket's frames until their release from now on.
    pub(super) fn launch(&mut self, socket: BorrowedFd<'_>, holder: FrameHolder) -> io::Result<()> {
        self.launch = Some(LaunchTimes::new(socket, holder)?);
        self.sent = Some(SendErrorQueue::new(socket)?);
        Ok(())
    }

    /// Returns the maximum time that frames may be pushed before their release.
    pub(super) fn lead(&self) -> Option<Nanos> {
        self.launch.as_ref().map(|_| LEAD)
    }

    /// Enables stamps for frames that request them, by the device if possible and
    /// permitted. Returns their source; `None` if the kernel does not stamp either.
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

    /// Returns a frame's control message; `stamp` requests a stamp.
    #[inline]
    pub(super) fn control(&mut self, release: Nanos, stamp: bool) -> Control {
        let flags = match (&self.sent, stamp) {
            (Some(sent), true) => Some(sent.flags()),
            _ => None,
        };
        let launch = self.launch.as_mut().map(|launch| launch.at(release));
        Control::new(flags, launch)
    }

    /// Records that the kernel has numbered a frame to be stamped; `None` if it was not
    /// sent.
    pub(super) fn numbered(&mut self, release: Option<Nanos>) {
        if let Some(sent) = &mut self.sent {
            sent.numbered(release);
        }
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut impl FnMut(SendStamp)) {
        if let Some(sent) = &mut self.sent {
            sent.drain(take);
        }
    }

    /// Returns the number of frames dropped because they were late.
    pub(super) fn missed(&mut self) -> u64 {
        match (&mut self.sent, &self.launch) {
            (Some(sent), Some(_)) => sent.missed(),
            _ => 0,
        }
    }
}
