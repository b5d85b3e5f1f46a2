//! Minimal senders, as a baseline for port benchmarks: one frame repeatedly, as fast as a
//! socket accepts it. The difference is a port's own cost (copies, ordering, accounting).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::packet::{bind, message, raw_socket};
use super::socket::{Buffer, enlarge, failure, set_option};
use super::{PortError, interface};

pub use super::xdp::BareXdp;

/// Messages per call of [`BarePacket::send_many`].
const MESSAGES: usize = 64;
/// Bytes of frames in transit to the driver.
const SEND_BUFFER: usize = 8 * 1024 * 1024;

/// A packet socket that sends one frame, bypassing the kernel's queueing layer.
pub struct BarePacket {
    socket: OwnedFd,
    frame: Vec<u8>,
}

impl BarePacket {
    /// Opens an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// As for the port `packet:IF`.
    pub fn open(name: &str, frame: &[u8]) -> Result<BarePacket, PortError> {
        let port = format!("packet:{name}");
        let interface = interface::find_up(&port, name)?;
        let socket = raw_socket(&port)?;
        let on: libc::c_int = 1;
        set_option(
            socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            &on,
        )
        .map_err(|e| failure(&port, "going past the queueing layer", e))?;
        enlarge(socket.as_fd(), Buffer::Send, SEND_BUFFER)
            .map_err(|e| failure(&port, "enlarging the send buffer", e))?;
        bind(socket.as_fd(), &interface, 0).map_err(|e| failure(&port, "binding the socket", e))?;
        Ok(BarePacket {
            socket,
            frame: frame.to_vec(),
        })
    }

    /// Sends the frame once, by `send`. Returns the number of frames accepted.
    ///
    /// # Errors
    /// System errors, except for a full device.
    pub fn send_one(&self) -> io::Result<usize> {
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        match nix::sys::socket::send(self.socket.as_raw_fd(), &self.frame, flags) {
            Ok(_) => Ok(1),
            Err(nix::Error::EAGAIN | nix::Error::ENOBUFS) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the frame 64 times, by one `sendmmsg`. Returns the number of frames
    /// accepted.
    ///
    /// # Errors
    /// System errors, except for a full device.
    pub fn send_many(&self) -> io::Result<usize> {
        let mut part = [libc::iovec {
            iov_base: self.frame.as_ptr().cast_mut().cast(),
            iov_len: self.frame.len(),
        }];
        let mut messages = [libc::mmsghdr {
            msg_hdr: message(&mut part),
            msg_len: 0,
        }; MESSAGES];
        // SAFETY: every message points to the one part, and that to the frame,
        // all of which live during the call; the kernel reads the frame and
        // writes the messages' lengths.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                MESSAGES as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => Ok(0),
            _ => Err(error),
        }
    }
}
