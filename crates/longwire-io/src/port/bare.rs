//! Minimal senders: the baseline for port benchmarks. They send one frame repeatedly, as fast as a
//! socket accepts it. A port's additional cost is due to copies, ordering and accounting.

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use super::closing::SlowSocket;
use super::packet::{BYPASS, message, sending_socket};
use super::{PortError, settings};

pub use super::xdp::BareXdp;

/// Messages per call of [`BarePacket::send_many`].
const MESSAGES: usize = 64;

/// A packet socket that sends one frame, bypassing the kernel's queueing layer.
pub struct BarePacket {
    socket: SlowSocket,
    frame: Vec<u8>,
}

impl BarePacket {
    /// Opens an interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// As for the port `packet:IF`.
    pub fn open(name: &str, frame: &[u8]) -> Result<BarePacket, PortError> {
        let port = format!("packet:{name}");
        Ok(BarePacket {
            socket: sending_socket(&port, &settings::find_up(&port, name)?, &[BYPASS])?,
            frame: frame.to_vec(),
        })
    }

    /// Sends the frame once, with `send`. Returns the number of frames accepted.
    ///
    /// # Errors
    /// System errors other than a full device.
    pub fn send_one(&self) -> io::Result<usize> {
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        match nix::sys::socket::send(self.socket.as_raw_fd(), &self.frame, flags) {
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Ok(0),
            sent => Ok(sent.map(|_| 1)?),
        }
    }

    /// Sends the frame 64 times, with one `sendmmsg`. Returns the number of frames accepted.
    ///
    /// # Errors
    /// System errors other than a full device.
    pub fn send_many(&self) -> io::Result<usize> {
        let mut part = [libc::iovec {
            iov_base: self.frame.as_ptr().cast_mut().cast(),
            iov_len: self.frame.len(),
        }];
        let mut messages = [libc::mmsghdr {
            msg_hdr: message(&mut part),
            msg_len: 0,
        }; MESSAGES];
        // SAFETY: every message points to the same part, which points to the frame; all live during
        // the call. The kernel reads the frame and writes the messages' lengths.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                MESSAGES as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match Errno::result(sent) {
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Ok(0),
            sent => Ok(sent? as usize),
        }
    }
}
