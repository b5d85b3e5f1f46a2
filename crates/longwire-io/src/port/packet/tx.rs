//! Sending: frames are copied into slots with their virtio-net header, and a
//! flush hands all of them to the kernel with one system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::settings::Settings;
use super::super::socket::{ask_interface, checked, failure};
use super::super::{Outgoing, PortError, PortLosses, Pushed, TxPort, vnet};
use super::SUPER_MAX;

/// Frames that wait for a flush at most. More would not make a system call
/// cheaper, and less would still fit the cache.
const SLOTS: usize = 64;
/// A slot holds a super-packet; only the pages that frames touch are ever
/// backed by memory. An odd number of cache lines, lest all slots share the
/// same few sets of the cache.
const STRIDE: usize = 64 * 1037;
const _: () = assert!(vnet::LEN + SUPER_MAX <= STRIDE);
/// Frames longer than this are sent from where they are: a system call costs
/// less than copying them.
const COPY_MAX: usize = 9 * 1024;
/// Bytes of an Ethernet header, and of a VLAN tag.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// The sending half of `packet:IF`.
pub struct PacketTx {
    /// Straight to the driver.
    direct: OwnedFd,
    /// Through the kernel's queueing layer, which cuts up super-packets for
    /// devices that cannot.
    queued: OwnedFd,
    port: String,
    interface: String,
    mtu: usize,
    batch: Batch,
    /// Since the last flush.
    sent: usize,
    losses: PortLosses,
    /// Put back when both halves are closed.
    _settings: Arc<Settings>,
}

impl PacketTx {
    pub(super) fn new(
        direct: OwnedFd,
        queued: OwnedFd,
        port: String,
        interface: &super::Interface,
        settings: Arc<Settings>,
    ) -> PacketTx {
        PacketTx {
            direct,
            queued,
            port,
            interface: interface.name.clone(),
            mtu: interface.mtu as usize,
            batch: Batch::new(),
            sent: 0,
            losses: PortLosses::default(),
            _settings: settings,
        }
    }

    /// Whether the device takes a frame of this size.
    fn fits(&mut self, frame: &Outgoing<'_>) -> bool {
        let len = frame.bytes.len();
        if !(ETHERNET..=SUPER_MAX).contains(&len) {
            return false;
        }
        if frame.offload.segments.is_some() {
            return true;
        }
        let tagged = frame.bytes[12..14] == [0x81, 0x00];
        let header = ETHERNET + if tagged { TAG } else { 0 };
        if len <= self.mtu + header {
            return true;
        }
        // Perhaps the MTU was raised since it was last looked at.
        if let Ok(answer) = ask_interface(self.direct.as_fd(), &self.interface, libc::SIOCGIFMTU) {
            // SAFETY: the kernel answered with the MTU.
            let mtu = unsafe { answer.ifr_ifru.ifru_mtu };
            self.mtu = usize::try_from(mtu).unwrap_or(self.mtu);
        }
        len <= self.mtu + header
    }

    /// Whether the interface has a carrier: without, the kernel takes frames
    /// for ever and none leaves.
    fn has_carrier(&self) -> io::Result<bool> {
        let answer = ask_interface(self.direct.as_fd(), &self.interface, libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel answered with the flags.
        let flags = unsafe { answer.ifr_ifru.ifru_flags };
        Ok(i32::from(flags) & libc::IFF_RUNNING != 0)
    }

    /// Sends a long frame from where it is. Returns whether it left.
    fn send_at_once(&mut self, frame: &Outgoing<'_>) -> bool {
        if self.batch.count > 0 {
            // An error comes again with the next flush, where it can be told.
            let _ = self.send_batch();
            if self.batch.count > 0 {
                return false;
            }
        }
        let mut header = vnet::encode(frame.offload, frame.bytes);
        let mut parts = [
            libc::iovec {
                iov_base: header.as_mut_ptr().cast(),
                iov_len: header.len(),
            },
            libc::iovec {
                iov_base: frame.bytes.as_ptr().cast_mut().cast(),
                iov_len: frame.bytes.len(),
            },
        ];
        let message = message(&mut parts);
        // SAFETY: the message points to two readable pieces, which live
        // during the call; sending does not write to them.
        let sent = unsafe { libc::sendmsg(self.direct.as_raw_fd(), &message, libc::MSG_DONTWAIT) };
        self.sent += usize::from(sent >= 0);
        sent >= 0
    }

    /// Sends as much of the batch as the kernel takes.
    fn send_batch(&mut self) -> Result<(), PortError> {
        while self.batch.count > 0 {
            match self.batch.send(self.direct.as_fd(), SLOTS) {
                Ok(sent) => {
                    self.batch.advance(sent);
                    self.sent += sent;
                }
                Err(error) => {
                    if !self.go_on_after(error)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The first frame of the batch was not taken. Returns whether to go on
    /// with the batch now; if not, it waits for the next flush.
    fn go_on_after(&mut self, error: io::Error) -> Result<bool, PortError> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(true),
            // The socket's buffer is full of frames on their way.
            Some(libc::EAGAIN | libc::ENOMEM) => Ok(false),
            Some(libc::ENOBUFS) => self.go_on_after_drop(),
            // No good to this device, now or later.
            Some(libc::EMSGSIZE | libc::EINVAL) => {
                self.lose(1);
                Ok(true)
            }
            _ => Err(failure(&self.port, "sending", error)),
        }
    }

    /// The driver dropped the first frame rather than send it: it is full, has
    /// no carrier, or cannot cut up super-packets.
    fn go_on_after_drop(&mut self) -> Result<bool, PortError> {
        let carrier = self
            .has_carrier()
            .map_err(|error| failure(&self.port, "looking for a carrier", error))?;
        if !carrier {
            // As on a cable that is not plugged in.
            self.lose(self.batch.count);
            return Ok(true);
        }
        if self.batch.first_has_segments() && self.batch.send(self.queued.as_fd(), 1).is_ok() {
            self.batch.advance(1);
            self.sent += 1;
            return Ok(true);
        }
        Ok(false)
    }

    fn lose(&mut self, frames: usize) {
        self.batch.advance(frames);
        self.losses.send_failed += frames as u64;
    }
}

impl TxPort for PacketTx {
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed {
        if !self.fits(&frame) {
            return Pushed::Refused;
        }
        if frame.bytes.len() > COPY_MAX && self.send_at_once(&frame) {
            return Pushed::Taken;
        }
        if self.batch.count == SLOTS {
            return Pushed::Full;
        }
        self.batch.put(&frame);
        Pushed::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.send_batch()?;
        Ok(std::mem::take(&mut self.sent))
    }

    fn room(&self) -> usize {
        SLOTS - self.batch.count
    }

    fn unsent(&self) -> usize {
        self.batch.count
    }

    fn takes_offload(&self) -> bool {
        true
    }

    fn losses(&mut self) -> PortLosses {
        self.losses
    }
}

/// Frames that wait to be sent, in a ring of slots.
struct Batch {
    slots: Box<[u8]>,
    // Each message points to its part, and that to its slot.
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    head: usize,
    count: usize,
}

// SAFETY: the pointers among the three boxes stay right wherever the value is
// moved, for the boxes' contents do not move; nothing is tied to a thread.
unsafe impl Send for Batch {}

/// A message without an address: the sockets are bound.
fn message(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which
    // zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message
}

impl Batch {
    fn new() -> Batch {
        let mut slots = vec![0u8; SLOTS * STRIDE].into_boxed_slice();
        let mut parts: Box<[libc::iovec]> = slots
            .chunks_exact_mut(STRIDE)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: 0,
            })
            .collect();
        let messages = parts
            .iter_mut()
            .map(|part| libc::mmsghdr {
                msg_hdr: message(std::slice::from_mut(part)),
                msg_len: 0,
            })
            .collect();
        Batch {
            slots,
            parts,
            messages,
            head: 0,
            count: 0,
        }
    }

    /// Copies a frame into the next slot, of which one is free.
    #[inline]
    fn put(&mut self, frame: &Outgoing<'_>) {
        let index = (self.head + self.count) % SLOTS;
        let slot = &mut self.slots[index * STRIDE..][..STRIDE];
        let end = vnet::LEN + frame.bytes.len();
        slot[..vnet::LEN].copy_from_slice(&vnet::encode(frame.offload, frame.bytes));
        slot[vnet::LEN..end].copy_from_slice(frame.bytes);
        self.parts[index].iov_len = end;
        self.count += 1;
    }

    /// Whether the first frame is a super-packet, by its virtio-net header.
    fn first_has_segments(&self) -> bool {
        self.slots[self.head * STRIDE + 1] != 0
    }

    /// Offers frames to the kernel, the first `max` at most; returns how many
    /// it took.
    fn send(&mut self, socket: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let run = self.count.min(SLOTS - self.head).min(max);
        let messages = &mut self.messages[self.head..][..run];
        // SAFETY: the messages point to parts and slots that live as long as
        // `self`; the kernel reads the slots and writes the messages' lengths
        // during the call only.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                run as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        Ok(checked(sent)? as usize)
    }

    /// Frees the first slots.
    fn advance(&mut self, frames: usize) {
        self.head = (self.head + frames) % SLOTS;
        self.count -= frames;
        if self.count == 0 {
            // The same warm slots again, in one run.
            self.head = 0;
        }
    }
}
