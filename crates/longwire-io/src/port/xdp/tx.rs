//! Sending: frames are copied into chunks of our own, which go to the kernel
//! by the transmit ring and come back by the completion ring.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use super::super::socket::{failure, pending_error};
use super::super::{Outgoing, PortError, PortLosses, Pushed, TxPort};
use super::Attachment;
use super::rings::{Consumer, Producer};
use super::socket::Sending;
use super::umem::Umem;

/// Bytes of an Ethernet header: the shortest frame there is.
const ETHERNET: usize = 14;

/// The sending half of `xdp:IF`.
pub struct XdpTx {
    socket: Arc<OwnedFd>,
    transmit: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    umem: Arc<Umem>,
    /// Chunks that hold nothing.
    free: Vec<u64>,
    attachment: Arc<Attachment>,
    frame_max: usize,
    /// Frames that the kernel has taken and not lost, since the last flush.
    left: usize,
    losses: PortLosses,
}

impl XdpTx {
    pub(super) fn new(
        socket: Arc<OwnedFd>,
        sending: Sending,
        umem: Arc<Umem>,
        free: Vec<u64>,
        attachment: Arc<Attachment>,
        frame_max: usize,
    ) -> XdpTx {
        XdpTx {
            socket,
            transmit: sending.transmit,
            completion: sending.completion,
            umem,
            free,
            attachment,
            frame_max,
            left: 0,
            losses: PortLosses::default(),
        }
    }

    /// Takes back the chunks of frames that were sent.
    fn reclaim(&mut self) {
        let mut any = false;
        while let Some(address) = self.completion.peek() {
            self.free.push(self.umem.chunk_of(address));
            self.completion.advance();
            any = true;
        }
        if any {
            self.completion.release();
        }
    }

    /// Makes the kernel look at the transmit ring.
    fn kick(&self) -> io::Result<()> {
        // SAFETY: a call without a buffer or an address.
        let result = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Kicks the kernel until it has taken all it will.
    fn send(&mut self) -> Result<(), PortError> {
        self.left += self.transmit.look() as usize;
        while self.transmit.untaken() > 0 && self.transmit.needs_wakeup() {
            let result = self.kick();
            let taken = self.transmit.look() as usize;
            self.left += taken;
            self.reclaim();
            let Err(error) = result else {
                if taken == 0 {
                    return Ok(());
                }
                continue;
            };
            match error.raw_os_error() {
                // The device dropped the last frame that was taken.
                Some(libc::EBUSY) if taken > 0 => {
                    self.left -= 1;
                    self.losses.send_failed += 1;
                }
                // A call sends no more than its budget; the rest is for the
                // next one.
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENOMEM) if taken > 0 => {}
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENOMEM) => return Ok(()),
                Some(libc::EINTR) => {}
                _ => return Err(failure(&self.attachment.port, "sending", error)),
            }
        }
        Ok(())
    }
}

impl TxPort for XdpTx {
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed {
        let len = frame.bytes.len();
        if !(ETHERNET..=self.frame_max).contains(&len) {
            return Pushed::Refused;
        }
        if self.transmit.room() == 0 || self.free.is_empty() {
            return Pushed::Full;
        }
        let Some(address) = self.free.pop() else {
            return Pushed::Full;
        };
        // SAFETY: a free chunk is ours, and no other piece of it is in use.
        let Some(chunk) = (unsafe { self.umem.piece(address, len) }) else {
            self.free.push(address);
            return Pushed::Refused;
        };
        chunk.copy_from_slice(frame.bytes);
        self.transmit.put(libc::xdp_desc {
            addr: address,
            len: len as u32,
            options: 0,
        });
        Pushed::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.transmit.submit();
        self.send()?;
        self.reclaim();
        if self.transmit.untaken() > 0
            && let Some(error) = pending_error(self.socket.as_fd()).unwrap_or_else(Some)
        {
            return Err(failure(&self.attachment.port, "sending", error));
        }
        Ok(std::mem::take(&mut self.left))
    }

    fn room(&self) -> usize {
        self.free.len().min(self.transmit.room() as usize)
    }

    fn unsent(&self) -> usize {
        self.transmit.untaken() as usize
    }

    fn losses(&mut self) -> PortLosses {
        self.losses
    }
}
