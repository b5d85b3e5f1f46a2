//! Frames with a given check sequence, for gap frames: a packet socket whose driver adds
//! none (SO_NOFCS).
//!
//! The kernel returns EPROTONOSUPPORT for drivers without the flag `IFF_SUPP_NOFCS`, and
//! has no other query. Decision 0013 lists the drivers with it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use longwire_engine::BitRate;

use super::super::gap::{GapTx, RawLine};
use super::super::socket::{Buffer, enlarge, failure, set_option};
use super::batch::message;
use super::{PortError, bind, raw_socket};
use crate::net::ethtool::Ethtool;
use crate::net::interface::Interface;

/// Maximum number of frames waiting for a flush: more than a driver's ring would not keep
/// the wire busier.
const SLOTS: usize = 256;
/// Bytes of an Ethernet header with a VLAN tag, and of a check sequence.
const HEADER: usize = 14 + 4;
const CHECK: usize = 4;
/// Bytes of frames in transit to the driver: the wire's next 200 us at 100 Gbit/s.
const SEND_BUFFER: usize = 8 * 1024 * 1024;

/// Drivers that claim to omit their check sequence but add it (i40e until a patch of
/// March 2026): fillers would arrive as valid frames.
const DECEIVERS: [&str; 1] = ["i40e"];

/// Opens the sending half of `packet:IF` with gap frames.
///
/// # Errors
/// The driver cannot send frames with an invalid check sequence, or the wire has another
/// rate.
pub fn open_gap(name: &str, rate: BitRate) -> Result<GapTx<CheckedLine>, PortError> {
    let port = format!("packet:{name}");
    let interface = super::super::interface::find_up(&port, name)?;
    let driver = driver_of(&interface);
    if DECEIVERS.contains(&driver.as_str()) {
        return Err(refused(
            &port,
            &driver,
            "which overwrites the frame check sequence",
        ));
    }
    check_speed(&port, name, rate)?;
    let line = CheckedLine::open(&port, &interface)?;
    line.probe(&driver)?;
    Ok(GapTx::new(line, port, rate))
}

fn driver_of(interface: &Interface) -> String {
    let driver = Ethtool::open().and_then(|ethtool| ethtool.driver(&interface.name));
    driver.unwrap_or_else(|_| "unknown".to_owned())
}

fn refused(port: &str, driver: &str, why: &str) -> PortError {
    PortError::Unsupported {
        port: port.to_owned(),
        reason: format!(
            "no gap frames: driver {driver}, {why}; SO_NOFCS works with e1000, e1000e, igb and \
             ixgbe"
        ),
    }
}

/// Rejects a wire of another rate.
fn check_speed(port: &str, name: &str, rate: BitRate) -> Result<(), PortError> {
    let speed = Ethtool::open().and_then(|ethtool| ethtool.speed(name));
    // If the device does not report its speed, the user's value is used.
    match speed.ok().flatten() {
        Some(speed) if speed != rate => Err(PortError::Unsupported {
            port: port.to_owned(),
            reason: format!("gap frames at {rate}, but the wire has {speed}; write {speed}"),
        }),
        _ => Ok(()),
    }
}

/// Frames to be sent with their check sequences.
pub struct CheckedLine {
    socket: OwnedFd,
    port: String,
    frame_max: usize,
    stride: usize,
    slots: Box<[u8]>,
    // Each message points to its part, and that to its slot.
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    counts: Box<[bool]>,
    head: usize,
    count: usize,
    unsent: usize,
}

// SAFETY: the pointers among the boxes stay right wherever the value is
// moved, for the boxes' contents do not move; nothing is tied to a thread.
unsafe impl Send for CheckedLine {}

impl CheckedLine {
    fn open(port: &str, interface: &Interface) -> Result<CheckedLine, PortError> {
        let socket = raw_socket(port)?;
        let fd = socket.as_fd();
        let on: libc::c_int = 1;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)
            .map_err(|e| failure(port, "going past the queueing layer", e))?;
        set_option(fd, libc::SOL_SOCKET, libc::SO_NOFCS, &on)
            .map_err(|e| failure(port, "asking for check sequences of ours", e))?;
        enlarge(fd, Buffer::Send, SEND_BUFFER)
            .map_err(|e| failure(port, "enlarging the send buffer", e))?;
        bind(fd, interface, 0).map_err(|e| failure(port, "binding the socket", e))?;
        Ok(CheckedLine::new(
            socket,
            port,
            interface.mtu as usize + HEADER,
        ))
    }

    fn new(socket: OwnedFd, port: &str, frame_max: usize) -> CheckedLine {
        // An odd number of cache lines spreads slots over the cache's sets.
        let stride = ((frame_max + CHECK).div_ceil(64) | 1) * 64;
        let mut slots = vec![0u8; SLOTS * stride].into_boxed_slice();
        let mut parts: Box<[libc::iovec]> = slots
            .chunks_exact_mut(stride)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: 0,
            })
            .collect();
        let messages = parts.iter_mut().map(|part| libc::mmsghdr {
            msg_hdr: message(std::slice::from_mut(part)),
            msg_len: 0,
        });
        CheckedLine {
            socket,
            port: port.to_owned(),
            frame_max,
            stride,
            messages: messages.collect(),
            slots,
            parts,
            counts: vec![false; SLOTS].into_boxed_slice(),
            head: 0,
            count: 0,
            unsent: 0,
        }
    }

    /// Sends a frame with an invalid check sequence, which the receiving device discards:
    /// the kernel refuses it if the driver lacks support.
    fn probe(&self, driver: &str) -> Result<(), PortError> {
        let frame = [0u8; 60 + CHECK];
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        match nix::sys::socket::send(self.socket.as_raw_fd(), &frame, flags) {
            Ok(_) | Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(()),
            Err(nix::Error::EPROTONOSUPPORT) => {
                Err(refused(&self.port, driver, "which lacks SO_NOFCS"))
            }
            Err(error) => Err(failure(
                &self.port,
                "sending a first gap frame",
                error.into(),
            )),
        }
    }

    /// Offers the frames from the first on, up to the ring's end.
    fn send_run(&mut self) -> io::Result<usize> {
        let run = self.count.min(SLOTS - self.head);
        let messages = &mut self.messages[self.head..][..run];
        // SAFETY: the messages point to parts and slots that live as long as
        // `self`; the kernel reads the slots and writes the messages' lengths
        // during the call only.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                run as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Removes departed frames from the front; returns how many of them count.
    fn advance(&mut self, frames: usize) -> usize {
        let counted = self.counts[self.head..][..frames]
            .iter()
            .filter(|counts| **counts);
        let counted = counted.count();
        self.head = (self.head + frames) % SLOTS;
        self.count -= frames;
        self.unsent -= counted;
        counted
    }
}

impl RawLine for CheckedLine {
    fn free_slots(&self) -> usize {
        SLOTS - self.count
    }

    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool) {
        let index = (self.head + self.count) % SLOTS;
        let slot = &mut self.slots[index * self.stride..][..self.stride];
        slot[..frame.len()].copy_from_slice(frame);
        slot[frame.len()..][..CHECK].copy_from_slice(&check);
        self.parts[index].iov_len = frame.len() + CHECK;
        self.counts[index] = counts;
        self.count += 1;
        self.unsent += usize::from(counts);
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let mut left = 0;
        while self.count > 0 {
            match self.send_run() {
                Ok(sent) => left += self.advance(sent),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The driver's ring is full: the wire is as busy as it
                    // can be.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => break,
                    _ => return Err(failure(&self.port, "sending", error)),
                },
            }
        }
        Ok(left)
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn frame_max(&self) -> usize {
        self.frame_max
    }

    fn runs_by_itself(&self) -> bool {
        true
    }
}
