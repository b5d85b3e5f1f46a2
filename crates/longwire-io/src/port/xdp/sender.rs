//! Sending through an AF_XDP socket: frames are copied into chunks, which pass to the kernel
//! through the transmit ring and return through the completion ring.
//!
//! Sending needs no program on the interface and only a packet socket's rights, and takes the
//! kernel a third less time than sending through a packet socket. `packet:IF` therefore sends
//! wire-size frames through AF_XDP too.
//!
//! On request, the kernel writes a frame's departure into memory before the frame (TX metadata,
//! Linux 6.11).
//!
//! If frames are copied, the stamp is taken when the driver is done with the kernel's copy; a veth
//! device is done when the peer has the frame. Stamps are on the CLOCK_TAI scale. All frames take
//! the same path, so that none overtakes another.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use longwire_engine::Nanos;
use nix::time::ClockId;

use super::AttachedProgram;
use super::rings::{Consumer, Producer};
use super::socket::{PAGE, Queue, SendRings, SocketFailure, Umem, kick};
use crate::clock::ahead_of_monotonic;
use crate::net::interface::Interface;
use crate::port::carrier::Carrier;
use crate::port::closing::SlowSocket;
use crate::port::offload::{Checksum, finish_checksum};
use crate::port::sampling::Sampler;
use crate::port::socket::{failure, pending_error};
use crate::port::{PortError, PortLosses, PushResult, SendStamp, StampedBy, TxFrame, TxPort};

/// Maximum number of frames in transit.
pub(super) const TX_FRAMES: usize = 512;
/// Minimum offset of a frame in its chunk. Metadata precedes the frame, which begins on a cache
/// line.
const PLACE: usize = 64;
const _: () = assert!(METADATA <= PLACE);

/// A socket's sending half.
pub(crate) struct Sender {
    // Must be unmapped before the socket is closed.
    transmit: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    socket: Arc<SlowSocket>,
    umem: Arc<Umem>,
    /// Unused chunks.
    free: Vec<u64>,
    /// Whether the kernel stamps departing frames.
    stamps_frames: bool,
    stamps: PendingStamps,
}

impl Sender {
    pub(super) fn new(
        socket: Arc<SlowSocket>,
        sending: SendRings,
        umem: Arc<Umem>,
        free: Vec<u64>,
        copies: bool,
    ) -> Sender {
        Sender {
            // A zero-copy device would stamp with its own clock.
            stamps_frames: sending.metadata && copies,
            stamps: PendingStamps::default(),
            transmit: sending.transmit,
            completion: sending.completion,
            socket,
            umem,
            free,
        }
    }

    /// Opens a send-only socket on an interface's first queue. Frames that are longer than
    /// `usual`, or do not fit in a page, must take another path.
    pub(crate) fn open(interface: &Interface, usual: usize) -> Result<Sender, SocketFailure> {
        let chunk = (PLACE + usual).next_power_of_two().clamp(PAGE / 2, PAGE);
        let umem = Umem::new(chunk, TX_FRAMES).map_err(|e| ("allocating frame memory", e))?;
        // Without a program, the receive ring is unused; a small one costs little.
        let (queue, sending) = Queue::with_memory(&umem, 64, TX_FRAMES as u32)?;
        queue.bind(interface.index, 0, false, None)?;
        let free = (0..TX_FRAMES).map(|number| umem.address(number)).collect();
        Ok(Sender::new(
            queue.socket,
            sending,
            Arc::new(umem),
            free,
            true,
        ))
    }

    /// Returns the maximum length of a frame that fits in a chunk.
    pub(crate) fn frame_max(&self) -> usize {
        self.umem.chunk() - PLACE
    }

    /// Returns whether the kernel stamps departing frames.
    pub(crate) fn stamps_frames(&self) -> bool {
        self.stamps_frames
    }

    /// Passes the received send stamps to `take`.
    pub(crate) fn sampled(&mut self, take: &mut dyn FnMut(SendStamp)) {
        self.reclaim();
        self.stamps.drain(take);
    }

    /// Returns the number of frames that can be added.
    pub(crate) fn free_slots(&self) -> usize {
        self.free.len().min(self.transmit.free_slots() as usize)
    }

    /// Returns the number of frames that the kernel has not consumed.
    pub(crate) fn unsent(&self) -> usize {
        self.transmit.untaken() as usize
    }

    /// Copies a frame and completes its checksum if partial. `stamped` is its release if its send
    /// stamp is requested. Returns whether there was a free chunk.
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
        // SAFETY: a free chunk belongs to this process, and no other piece of it is in use.
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

    /// Writes the stamp request before a frame.
    #[cold]
    fn ask_for_stamp(&mut self, chunk: u64, address: u64, release: Nanos) {
        let metadata = self.stamps.ask(chunk, release);
        // SAFETY: the chunk belongs to this process until it is submitted, and the frame in it lies
        // after this piece.
        if let Some(piece) = unsafe { self.umem.piece(address - METADATA as u64, METADATA) } {
            piece.copy_from_slice(&metadata);
        }
    }

    /// Makes the kernel consume frames and returns the number that left. `dropped` receives each
    /// frame that the device dropped, and returns whether to continue.
    pub(crate) fn send(&mut self, mut dropped: impl FnMut(&[u8]) -> bool) -> io::Result<usize> {
        self.transmit.submit();
        let mut left = self.transmit.look() as usize;
        while self.transmit.untaken() > 0 && self.transmit.needs_wakeup() {
            let result = kick(&self.socket);
            let taken = self.transmit.look() as usize;
            left += taken;
            match result.map_err(|error| (error.raw_os_error(), error)) {
                // The device dropped the last consumed frame.
                Err((Some(libc::EBUSY), _)) if taken > 0 => {
                    left -= 1;
                    let chunk = self.umem.chunk_of(self.transmit.last_taken().addr);
                    self.stamps.dropped(chunk);
                    if !dropped(self.last_taken()) {
                        break;
                    }
                }
                // A call sends no more than its budget, or the socket's buffer is full of frames in
                // transit.
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
        // A driver that is awake sends without a call, and does not report failures.
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
        // SAFETY: the kernel is done with the chunk, which is not reused until it is reclaimed and
        // filled with another frame; both need `&mut self`.
        let piece = unsafe { self.umem.piece(desc.addr, desc.len as usize) };
        piece.map_or(&[], |bytes| &*bytes)
    }

    /// Collects the chunks of completed frames.
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

/// Size of `struct xsk_tx_metadata` in bytes: flags, and a union of 16 bytes that begins with the
/// stamp.
pub(super) const METADATA: usize = 24;
/// Maximum number of stamps kept for the caller, and of frames that wait for a stamp; if there are
/// more, the oldest are dropped.
const KEPT_MAX: usize = 8192;

/// Frames with a requested stamp, and received stamps.
#[derive(Debug, Default)]
pub(super) struct PendingStamps {
    /// Chunks in transit, each with its frame's release.
    waiting: VecDeque<(u64, Nanos)>,
    /// Pairs of release and departure on the CLOCK_TAI scale.
    received: VecDeque<(Nanos, u64)>,
}

impl PendingStamps {
    /// Requests a stamp for the frame in a chunk, and returns the metadata to write before the
    /// frame.
    pub(super) fn ask(&mut self, chunk: u64, release: Nanos) -> [u8; METADATA] {
        if self.waiting.len() == KEPT_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((chunk, release));
        let mut metadata = [0; METADATA];
        let flags = u64::from(libc::XDP_TXMD_FLAGS_TIMESTAMP);
        metadata[..8].copy_from_slice(&flags.to_ne_bytes());
        metadata
    }

    /// Records that the device dropped the frame in this chunk.
    pub(super) fn dropped(&mut self, chunk: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != chunk);
    }

    /// Takes the stamp from a completed chunk, if one was requested.
    #[inline]
    pub(super) fn completed(&mut self, umem: &Umem, chunk: u64, metadata_at: u64) {
        if !self.waiting.is_empty() {
            self.take(umem, chunk, metadata_at);
        }
    }

    fn take(&mut self, umem: &Umem, chunk: u64, metadata_at: u64) {
        // The chunk is nearly always the first, because frames leave in order.
        let place = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == chunk);
        let Some((_, release)) = place.and_then(|place| self.waiting.remove(place)) else {
            return;
        };
        // SAFETY: the chunk has returned to the sending half, and no other piece of it is in use.
        let metadata = unsafe { umem.piece(metadata_at, METADATA) };
        let stamp = metadata.and_then(|metadata| metadata[8..].first_chunk().copied());
        let stamp = stamp.map_or(0, u64::from_ne_bytes);
        // Zero means that no stamp was written.
        if stamp > 0 {
            if self.received.len() == KEPT_MAX {
                self.received.pop_front();
            }
            self.received.push_back((release, stamp));
        }
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut dyn FnMut(SendStamp)) {
        if self.received.is_empty() {
            return;
        }
        let ahead = ahead_of_monotonic(ClockId::CLOCK_TAI);
        for (release, tai) in self.received.drain(..) {
            take(SendStamp {
                release,
                left: Nanos::from_nanos(tai.saturating_add_signed(ahead.saturating_neg())),
                by: StampedBy::Kernel,
            });
        }
    }
}

/// Length of an Ethernet header, the minimum frame length.
const ETHERNET: usize = 14;

/// The sending half of `xdp:IF`.
pub struct XdpTx {
    sender: Sender,
    attachment: Arc<AttachedProgram>,
    frame_max: usize,
    sampler: Sampler,
    losses: PortLosses,
    pub(in crate::port) carrier: Option<Carrier>,
}

impl XdpTx {
    pub(super) fn new(sender: Sender, attachment: Arc<AttachedProgram>, frame_max: usize) -> XdpTx {
        XdpTx {
            sender,
            attachment,
            frame_max,
            sampler: Sampler::default(),
            losses: PortLosses::default(),
            carrier: None,
        }
    }

    /// Returns the interface's name.
    pub(in crate::port) fn interface(&self) -> &str {
        self.attachment.port.trim_start_matches("xdp:")
    }
}

impl TxPort for XdpTx {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if !(ETHERNET..=self.frame_max).contains(&frame.bytes.len()) {
            return PushResult::Refused;
        }
        if let Some(carrier) = &mut self.carrier
            && let Some(stopped) = carrier.stops(&frame)
        {
            return stopped;
        }
        let stamped = self.sampler.next().then_some(frame.release);
        if self.sender.put(frame.bytes, None, stamped) {
            return PushResult::Taken;
        }
        self.sampler.revert();
        PushResult::Full
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let lost = &mut self.losses.send_failed;
        self.sender
            .send(|_| {
                *lost += 1;
                true
            })
            .map_err(|error| failure(&self.attachment.port, "sending", error))
    }

    fn sample_every(&mut self, every: u32) -> Option<StampedBy> {
        self.sampler = if self.sender.stamps_frames() {
            Sampler::new(every)
        } else {
            return None;
        };
        (every > 0).then_some(StampedBy::Kernel)
    }

    fn sampled(&mut self, take: &mut dyn FnMut(SendStamp)) {
        self.sender.sampled(take);
    }

    fn free_slots(&self) -> usize {
        self.sender.free_slots()
    }

    fn unsent(&self) -> usize {
        self.sender.unsent()
    }

    fn losses(&mut self) -> PortLosses {
        PortLosses {
            no_carrier: self.carrier.as_ref().map_or(0, Carrier::lost),
            ..self.losses
        }
    }

    fn set_carrier(&mut self, up: bool) {
        if let Some(carrier) = &self.carrier {
            carrier.set(up);
        }
    }
}
