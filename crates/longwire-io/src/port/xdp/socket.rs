//! AF_XDP sockets, one per receive queue, on the same memory, which is shared with the kernel and
//! divided into chunks of equal size.
//!
//! Every chunk belongs to one party at a time: the kernel, the receiving half or the sending half.
//! The rings transfer ownership.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::rings::{Consumer, Producer, XdpRing};
use super::sender::METADATA;
use crate::mapping::Mapping;
use crate::port::closing::SlowSocket;
use crate::port::socket::{Buffer, enlarge, get_option, set_option};

/// How long to retry while a queue is busy. It stays busy for some tens of milliseconds after its
/// last socket is closed.
const BUSY_FOR: Duration = Duration::from_millis(500);
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// Socket option for the number of frames per system call if the device copies them
/// (`XDP_MAX_TX_SKB_BUDGET`); the kernel's default is 32.
const MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Bytes of frames in transit to the driver, if the device copies them.
const SEND_BUFFER: usize = 8 * 1024 * 1024;

/// A receive queue's socket with its rings.
pub(super) struct Queue {
    pub(super) socket: Arc<SlowSocket>,
    pub(super) fill: Producer<u64>,
    pub(super) receive: Consumer<libc::xdp_desc>,
}

/// The rings used to send.
pub(super) struct SendRings {
    pub(super) transmit: Producer<libc::xdp_desc>,
    pub(super) completion: Consumer<u64>,
    /// Whether frames may have metadata before them.
    pub(super) metadata: bool,
}

/// Failure to create a socket: the failed action and the error.
pub(super) type SocketFailure = (&'static str, io::Error);

impl Queue {
    /// Creates a socket that receives and sends, and registers the memory.
    pub(super) fn with_memory(
        umem: &Umem,
        rx_frames: u32,
        tx_frames: u32,
    ) -> Result<(Queue, SendRings), SocketFailure> {
        let socket = xdp_socket().map_err(|e| ("opening an AF_XDP socket", e))?;
        let fd = socket.as_fd();
        raise_memlock();
        let register = |metadata| {
            let memory = umem.registration(metadata);
            set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)
        };
        // Kernels before 6.11 do not know the metadata flag.
        let metadata = register(METADATA).is_ok();
        if !metadata {
            register(0).map_err(|e| ("registering frame memory", e))?;
        }
        let sending = SendRings::new(fd, tx_frames, metadata).map_err(|e| ("making a ring", e))?;
        Ok((Queue::new(socket, rx_frames)?, sending))
    }

    /// Creates a receive-only socket that shares another socket's memory.
    pub(super) fn sharing(rx_frames: u32) -> Result<Queue, SocketFailure> {
        let socket = xdp_socket().map_err(|e| ("opening an AF_XDP socket", e))?;
        // The kernel requires a completion ring but does not use it.
        let size: u32 = 64;
        set_option(
            socket.as_fd(),
            libc::SOL_XDP,
            libc::XDP_UMEM_COMPLETION_RING,
            &size,
        )
        .map_err(|e| ("making a ring", e))?;
        Queue::new(socket, rx_frames)
    }

    fn new(socket: OwnedFd, frames: u32) -> Result<Queue, SocketFailure> {
        let fd = socket.as_fd();
        // `Queue::give_back` explains the factor of two.
        let fill_size = 2 * frames;
        let rings = || {
            set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &fill_size)?;
            set_option(fd, libc::SOL_XDP, libc::XDP_RX_RING, &frames)?;
            let at = offsets(fd)?;
            let page = libc::XDP_UMEM_PGOFF_FILL_RING.cast_signed();
            let fill = XdpRing::map(fd, fill_size, page, &at.fr)?;
            let receive = XdpRing::map(fd, frames, libc::XDP_PGOFF_RX_RING, &at.rx)?;
            Ok((Producer::new(fill), Consumer::new(receive)))
        };
        let (fill, receive) = rings().map_err(|e| ("making a ring", e))?;
        Ok(Queue {
            socket: Arc::new(socket.into()),
            fill,
            receive,
        })
    }

    /// Binds to an interface's queue. Returns whether the device reads and writes the frames'
    /// memory itself (zero-copy).
    pub(super) fn bind(
        &self,
        interface: u32,
        queue: u32,
        zero_copy: bool,
        shared: Option<BorrowedFd<'_>>,
    ) -> Result<bool, SocketFailure> {
        let failed = |error| ("binding to a queue", error);
        let flags = match (shared, zero_copy) {
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, true) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
            (None, false) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd().cast_unsigned()),
        };
        let start = Instant::now();
        loop {
            // SAFETY: pointer and length describe `address`, which the kernel reads during the
            // call.
            let result = unsafe {
                libc::bind(
                    self.socket.as_raw_fd(),
                    (&raw const address).cast(),
                    size_of_val(&address) as libc::socklen_t,
                )
            };
            match Errno::result(result) {
                Ok(_) => return is_zero_copy(self.socket.as_fd()).map_err(failed),
                Err(Errno::EBUSY) if start.elapsed() <= BUSY_FOR => thread::sleep(BUSY_PAUSE),
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

fn xdp_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointers.
    let descriptor = Errno::result(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let options: libc::xdp_options = get_option(socket, libc::SOL_XDP, libc::XDP_OPTIONS)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Returns the offsets of the parts of a socket's rings.
fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    get_option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
}

impl SendRings {
    fn new(fd: BorrowedFd<'_>, frames: u32, metadata: bool) -> io::Result<SendRings> {
        set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &frames)?;
        set_option(fd, libc::SOL_XDP, libc::XDP_TX_RING, &frames)?;
        // Kernels before 6.17 lack this option and send 32 frames per call.
        let _ = set_option(fd, libc::SOL_XDP, MAX_TX_SKB_BUDGET, &frames);
        enlarge(fd, Buffer::Send, SEND_BUFFER)?;
        let at = offsets(fd)?;
        let page = libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed();
        let completion = XdpRing::map(fd, frames, page, &at.cr)?;
        Ok(SendRings {
            transmit: Producer::new(XdpRing::map(fd, frames, libc::XDP_PGOFF_TX_RING, &at.tx)?),
            completion: Consumer::new(completion),
            metadata,
        })
    }
}

/// Raises the process's locked-memory limit as far as permitted, because the frame memory counts as
/// locked.
fn raise_memlock() {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call reads a valid structure.
    if unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) } == 0 {
        return;
    }
    // SAFETY: the call writes a valid structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // If this fails too, the registration of the memory reports that the limit is too low.
        // SAFETY: the call reads a valid structure.
        unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
    }
}

/// Wakes the kernel for a socket's transmit ring.
pub(super) fn kick(socket: &SlowSocket) -> io::Result<()> {
    // SAFETY: the call takes neither a buffer nor an address.
    let result = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Bytes that the kernel leaves free before a received frame (`XDP_PACKET_HEADROOM`). They end with
/// the arrival stamp.
pub(super) const HEADROOM: usize = 256;
/// Maximum chunk size in bytes.
pub(super) const PAGE: usize = 4096;

/// The frame memory, mapped until dropped.
pub(super) struct Umem {
    memory: Mapping,
    chunk: usize,
    chunks: usize,
}

impl Umem {
    /// Maximum frame length in bytes: frame and headroom share a page.
    pub(super) const FRAME_MAX: usize = PAGE - HEADROOM;

    /// Returns the chunk size for frames of `frame_max` bytes; `None` if frame and headroom exceed
    /// the kernel's maximum, a page.
    pub(super) fn chunk_for(frame_max: usize) -> Option<usize> {
        [PAGE / 2, PAGE]
            .into_iter()
            .find(|chunk| frame_max + HEADROOM <= *chunk)
    }

    /// Maps memory for `chunks` chunks of `chunk` bytes.
    pub(super) fn new(chunk: usize, chunks: usize) -> io::Result<Umem> {
        Ok(Umem {
            memory: Mapping::anonymous(chunk * chunks, libc::MAP_POPULATE)?,
            chunk,
            chunks,
        })
    }

    /// Returns the registration of the memory, with `tx_metadata` bytes of metadata before sent
    /// frames.
    pub(super) fn registration(&self, tx_metadata: usize) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.memory.start().as_ptr() as u64,
            len: self.len() as u64,
            chunk_size: self.chunk as u32,
            headroom: 0,
            flags: match tx_metadata {
                0 => 0,
                _ => libc::XDP_UMEM_TX_METADATA_LEN,
            },
            tx_metadata_len: tx_metadata as u32,
        }
    }

    fn len(&self) -> usize {
        self.chunk * self.chunks
    }

    /// Returns the size of a chunk in bytes.
    pub(super) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Returns the address of the chunk with this number.
    pub(super) fn address(&self, number: usize) -> u64 {
        (number * self.chunk) as u64
    }

    /// Returns the address of the chunk that contains this address.
    #[inline]
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk as u64 - 1)
    }

    /// Returns a piece of the memory; `None` if it is not inside one chunk.
    ///
    /// # Safety
    /// The chunk must belong to the caller, and no other reference into it may be in use while the
    /// returned one is.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "chunks are handed out one by one")]
    pub(super) unsafe fn piece(&self, address: u64, len: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(len)?;
        let chunk_end = usize::try_from(self.chunk_of(address)).ok()? + self.chunk;
        if end > chunk_end || end > self.len() {
            return None;
        }
        // SAFETY: the piece is inside the mapping, and the caller owns the chunk.
        let piece = unsafe { self.memory.start().add(start) };
        // SAFETY: as above.
        Some(unsafe { std::slice::from_raw_parts_mut(piece.as_ptr(), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_inside_of_chunks_of_which_half_a_page_holds_ethernet_frames() {
        let umem = Umem::new(2048, 4).expect("memory");
        // SAFETY: the chunks have no other user, and the pieces are dropped immediately.
        let has = |address, len| unsafe { umem.piece(address, len) }.is_some();
        assert!(has(0, 2048) && has(6144, 2048) && has(2304, 1792));
        assert!(!has(2304, 1793) && !has(8192, 1) && !has(u64::MAX, 2) && !has(1, usize::MAX));
        assert_eq!(umem.chunk_of(2304), 2048);
        assert_eq!(umem.address(3), 6144);
        assert_eq!(Umem::chunk_for(1518), Some(2048));
        assert_eq!(Umem::chunk_for(3000), Some(4096));
        assert_eq!(Umem::chunk_for(9018), None);
    }
}
