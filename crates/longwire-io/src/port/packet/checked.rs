//! Frames with a given check sequence, for gap frames: a packet socket whose driver adds none
//! (SO_NOFCS).
//!
//! The kernel returns EPROTONOSUPPORT for drivers without the flag `IFF_SUPP_NOFCS`, and offers no
//! other way to query it. Decision 0013 lists the drivers that have the flag.

use std::os::fd::{AsFd, AsRawFd};

use longwire_engine::BitRate;

use super::super::closing::SlowSocket;
use super::super::gap::{GapTx, RawLine};
use super::super::socket::failure;
use super::batch::MessageRing;
use super::{BYPASS, PortError, sending_socket};
use crate::net::ethtool::Ethtool;
use crate::net::interface::Interface;

/// Maximum number of frames queued for a flush. More than a driver's ring holds would not keep the
/// wire busier.
const SLOTS: usize = 256;
/// Bytes of an Ethernet header with a VLAN tag, and of a check sequence.
const HEADER: usize = 14 + 4;
const CHECK: usize = 4;

/// Drivers that claim to omit the check sequence but add it (i40e until a patch in March 2026).
/// Fillers would arrive as valid frames.
const DECEIVERS: [&str; 1] = ["i40e"];

/// Opens the sending half of `packet:IF` with gap frames.
///
/// # Errors
/// The driver cannot send frames with an invalid check sequence, or the wire has a different rate.
pub fn open_gap(name: &str, rate: BitRate) -> Result<GapTx<CheckedLine>, PortError> {
    let port = &format!("packet:{name}");
    let interface = &super::super::settings::find_up(port, name)?;
    let driver = Ethtool::open().and_then(|ethtool| ethtool.driver(name));
    let driver = driver.unwrap_or_else(|_| "unknown".to_owned());
    if DECEIVERS.contains(&driver.as_str()) {
        let why = "which overwrites the frame check sequence";
        return Err(refused(port, &driver, why));
    }
    // If the device reports no speed, the user's value applies.
    if let Ok(Some(speed)) = Ethtool::open().and_then(|ethtool| ethtool.speed(name))
        && speed != rate
    {
        return Err(PortError::unsupported(
            port,
            format!("gap frames at {rate}, but the wire has {speed}; write {speed}"),
        ));
    }
    let line = CheckedLine::open(port, interface)?;
    line.probe(&driver)?;
    Ok(GapTx::new(line, port.to_owned(), rate))
}

fn refused(port: &str, driver: &str, why: &str) -> PortError {
    PortError::unsupported(
        port,
        format!(
            "no gap frames: driver {driver}, {why}; SO_NOFCS works with e1000, e1000e, igb and \
             ixgbe"
        ),
    )
}

/// A packet socket that sends frames with given check sequences.
pub struct CheckedLine {
    socket: SlowSocket,
    port: String,
    frame_max: usize,
    ring: MessageRing<SLOTS>,
    /// Whether each frame counts, as opposed to a filler.
    counts: [bool; SLOTS],
    unsent: usize,
}

impl CheckedLine {
    fn open(port: &str, interface: &Interface) -> Result<CheckedLine, PortError> {
        let no_check = (libc::SOL_SOCKET, libc::SO_NOFCS);
        let checked = (no_check, "requesting a custom frame check sequence");
        let frame_max = interface.mtu as usize + HEADER;
        Ok(CheckedLine {
            socket: sending_socket(port, interface, &[BYPASS, checked])?,
            port: port.to_owned(),
            frame_max,
            ring: MessageRing::new(frame_max + CHECK),
            counts: [false; SLOTS],
            unsent: 0,
        })
    }

    /// Sends a frame with an invalid check sequence, which the receiving device discards. The
    /// kernel refuses it if the driver lacks support.
    fn probe(&self, driver: &str) -> Result<(), PortError> {
        let frame = [0u8; 60 + CHECK];
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        match nix::sys::socket::send(self.socket.as_raw_fd(), &frame, flags) {
            Ok(_) | Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(()),
            Err(nix::Error::EPROTONOSUPPORT) => {
                Err(refused(&self.port, driver, "which lacks SO_NOFCS"))
            }
            Err(error) => {
                let action = "sending the first gap frame";
                Err(failure(&self.port, action, error.into()))
            }
        }
    }

    /// Removes departed frames from the front and returns their number without fillers.
    fn advance(&mut self, frames: usize) -> usize {
        let slots = self.ring.first_slots(frames);
        let counted = slots.filter(|slot| self.counts[*slot]).count();
        self.ring.advance(frames);
        self.unsent -= counted;
        counted
    }
}

impl RawLine for CheckedLine {
    fn free_slots(&self) -> usize {
        self.ring.free_slots()
    }

    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool) {
        let slot = self.ring.put([frame, &check]);
        self.counts[slot] = counts;
        self.unsent += usize::from(counts);
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let mut left = 0;
        while self.ring.len() > 0 {
            match self.ring.send(self.socket.as_fd(), SLOTS) {
                Ok(sent) => left += self.advance(sent),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The driver's ring is full, so the wire is as busy as it can be.
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
