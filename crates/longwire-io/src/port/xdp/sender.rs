//! Sending through an AF_XDP socket: frames are copied into our chunks, which pass to
//! the kernel by the transmit ring and return by the completion ring.
//!
//! It needs no program on the interface and no rights beyond a packet socket's, and
//! costs the kernel a third less time than one; so `packet:IF` sends its frames this
//! way too.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use longwire_engine::Nanos;

use super::super::SendStamp;
use super::super::offload::{Checksum, finish_checksum};
use super::super::socket::pending_error;
use super::rings::{Consumer, Producer};
use super::socket::{SendRings, SocketFailure, UnboundSocket, kick};
use super::stamps::{METADATA, PendingStamps};
use super::umem::{PAGE, Umem};
use crate::net::interface::Interface;

/// Frames in transit.
pub(super) const TX_FRAMES: usize = 512;
/// Minimum offset of a frame in its chunk: metadata precedes it, and it begins on a
/// cache line.
const PLACE: usize = 64;
const _: () = assert!(METADATA <= PLACE);
/// A socket's sending half.
pub(crate) struct Sender {
    // Unmapped before the socket is closed.
    transmit: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    socket: Arc<OwnedFd>,
    umem: Arc<Umem>,
    /// Unused chunks.
    free: Vec<u64>,
    /// Whether the kernel stamps frames as they leave.
    stamps_frames: bool,
    stamps: PendingStamps,
}

impl Sender {
    pub(super) fn new(
        socket: Arc<OwnedFd>,
        sending: SendRings,
        umem: Arc<Umem>,
        free: Vec<u64>,
        copies: bool,
    ) -> Sender {
        Sender {
            // A device that reads the memory itself would stamp by its own clock.
            stamps_frames: sending.metadata && copies,
            stamps: PendingStamps::default(),
            transmit: sending.transmit,
            completion: sending.completion,
            socket,
            umem,
            free,
        }
    }

    /// Opens a socket that only sends, on the first queue of an interface.
    pub(crate) fn open(interface: &Interface) -> Result<Sender, SocketFailure> {
        // Frames longer than a page have to leave another way.
        let frame_max = interface.mtu as usize + 14 + 4;
        let chunk = if frame_max <= PAGE / 2 {
            PAGE / 2
        } else {
            PAGE
        };
        let umem = Umem::new(chunk, TX_FRAMES).map_err(|e| ("getting frame memory", e))?;
        // A receive ring is not needed without a program, and costs little.
        let (socket, sending) = UnboundSocket::with_memory(&umem, 64, TX_FRAMES as u32)?;
        socket
            .bind(interface.index, 0, false, None)
            .map_err(|e| ("binding to a queue", e))?;
        let free = (0..TX_FRAMES).map(|number| umem.address(number)).collect();
        let socket = Arc::new(socket.socket);
        Ok(Sender::new(socket, sending, Arc::new(umem), free, true))
    }

    /// Returns the length of the longest frame that fits a chunk.
    pub(crate) fn frame_max(&self) -> usize {
        self.umem.chunk() - PLACE
    }

    /// Whether the kernel stamps frames as they leave.
    pub(crate) fn stamps_frames(&self) -> bool {
        self.stamps_frames
    }

    /// Passes the received send stamps to `take`.
    pub(crate) fn sampled(&mut self, take: &mut impl FnMut(SendStamp)) {
        self.reclaim();
        self.stamps.drain(take);
    }

    /// Returns how many frames can be added.
    pub(crate) fn free_slots(&self) -> usize {
        self.free.len().min(self.transmit.free_slots() as usize)
    }

    /// Returns the number of frames that the kernel has not consumed.
    pub(crate) fn unsent(&self) -> usize {
        self.transmit.untaken() as usize
    }

    /// Copies a frame, and finishes its checksum if that was left; `stamped` is its
    /// release if its send stamp is requested. Returns whether there was a free chunk.
    #[inline]
    pub(crate) fn put(
        &mut self,
        bytes: &[u8],
        unfinished: Option<Checksum>,
        stamped: Option<Nanos>,
    ) -> bool {
        if self.transmit.free_slots() == 0 {
            return false;
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        let address = chunk + PLACE as u64;
        // SAFETY: a free chunk is ours, and no other piece of it is in use.
        let Some(frame) = (unsafe { self.umem.piece(address, bytes.len()) }) else {
            self.free.push(chunk);
            return false;
        };
        frame.copy_from_slice(bytes);
        if let Some(checksum) = unfinished {
            finish_checksum(frame, checksum);
        }
        let stamped = stamped.filter(|_| self.stamps_frames);
        if let Some(release) = stamped {
            self.ask_for_stamp(chunk, address, release);
        }
        self.transmit.put(libc::xdp_desc {
            addr: address,
            len: bytes.len() as u32,
            options: match stamped {
                Some(_) => libc::XDP_TX_METADATA,
                None => 0,
            },
        })
    }

    /// Writes the request for a stamp before a frame.
    #[cold]
    fn ask_for_stamp(&mut self, chunk: u64, address: u64, release: Nanos) {
        let metadata = self.stamps.ask(chunk, release);
        // SAFETY: the chunk is ours until it is submitted, and the frame in it lies
        // after this piece.
        if let Some(piece) = unsafe { self.umem.piece(address - METADATA as u64, METADATA) } {
            piece.copy_from_slice(&metadata);
        }
    }

    /// Makes the kernel consume frames. Returns how many it consumed; `dropped`
    /// receives each frame that the device then dropped, and returns whether to
    /// continue.
    pub(crate) fn send(&mut self, mut dropped: impl FnMut(&[u8]) -> bool) -> io::Result<usize> {
        self.transmit.submit();
        let mut left = self.transmit.look() as usize;
        while self.transmit.untaken() > 0 && self.transmit.needs_wakeup() {
            let result = kick(&self.socket);
            let taken = self.transmit.look() as usize;
            left += taken;
            match result.map_err(|error| (error.raw_os_error(), error)) {
                // The last consumed frame was dropped by the device.
                Err((Some(libc::EBUSY), _)) if taken > 0 => {
                    left -= 1;
                    let chunk = self.umem.chunk_of(self.transmit.last_taken().addr);
                    self.stamps.dropped(chunk);
                    if !dropped(self.last_taken()) {
                        break;
                    }
                }
                // A call sends no more than its budget, and the socket's buffer may be
                // full of frames in transit.
                Err((Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENOMEM), _))
                | Ok(()) => {
                    if taken == 0 {
                        break;
                    }
                }
                Err((Some(libc::EINTR), _)) => {}
                Err((_, error)) => return Err(error),
            }
        }
        self.reclaim();
        // A driver that is awake sends by itself, and does not report failures.
        if self.transmit.untaken() > 0
            && let Some(error) = pending_error(self.socket.as_fd())?
        {
            return Err(error);
        }
        Ok(left)
    }

    /// Returns the frame that the kernel consumed last.
    fn last_taken(&self) -> &[u8] {
        let desc = self.transmit.last_taken();
        // SAFETY: the kernel is done with the chunk, and it is not used again
        // before it was reclaimed and another frame put in, which needs
        // `&mut self`.
        let piece = unsafe { self.umem.piece(desc.addr, desc.len as usize) };
        piece.map_or(&[], |bytes| &*bytes)
    }

    /// Collects the chunks of frames that were sent.
    fn reclaim(&mut self) {
        let before = self.free.len();
        while let Some(address) = self.completion.peek() {
            let chunk = self.umem.chunk_of(address);
            let metadata_at = address.saturating_sub(METADATA as u64);
            self.stamps.completed(&self.umem, chunk, metadata_at);
            self.free.push(chunk);
            self.completion.advance();
        }
        if self.free.len() > before {
            self.completion.release();
        }
    }
}
