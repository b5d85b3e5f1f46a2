//! A minimal AF_XDP sender: the baseline for port benchmarks. Every descriptor in the ring refers
//! to one chunk with one frame, and the loop only makes the socket's calls.

use std::io;
use std::sync::Arc;

use super::super::closing::SlowSocket;
use super::super::socket::failure;
use super::super::{PortError, settings};
use super::socket::{PAGE, Queue, SendRings, SocketFailure, Umem, kick};

/// Entries in the transmit ring, and maximum frames per burst.
const FRAMES: u32 = 512;
/// Offset of the frame in its chunk.
const PLACE: u64 = 64;

/// A socket that sends one frame repeatedly.
pub struct BareXdp {
    // Must be unmapped before the socket is closed.
    sending: SendRings,
    socket: Arc<SlowSocket>,
    _umem: Umem,
    len: u32,
    /// Frames in the ring that are not yet completed.
    on_the_way: u32,
}

impl BareXdp {
    /// Opens an interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// AF_XDP is unavailable, or the frame is longer than 4032 bytes.
    pub fn open(name: &str, frame: &[u8]) -> Result<BareXdp, PortError> {
        let port = format!("xdp:{name}");
        BareXdp::open_index(settings::find_up(&port, name)?.index, frame)
            .map_err(|(action, error)| failure(&port, action, error))
    }

    fn open_index(interface: u32, frame: &[u8]) -> Result<BareXdp, SocketFailure> {
        let umem = Umem::new(PAGE, 1).map_err(|e| ("allocating frame memory", e))?;
        // SAFETY: this is the only chunk, which is not yet in use.
        match unsafe { umem.piece(PLACE, frame.len()) } {
            Some(chunk) => chunk.copy_from_slice(frame),
            None => return Err(("placing the frame", io::ErrorKind::InvalidInput.into())),
        }
        let (queue, sending) = Queue::with_memory(&umem, 64, FRAMES)?;
        queue.bind(interface, 0, false, None)?;
        Ok(BareXdp {
            sending,
            socket: queue.socket,
            _umem: umem,
            len: frame.len() as u32,
            on_the_way: 0,
        })
    }

    /// Puts up to `burst` frames into the ring, wakes the kernel and collects completions. Returns
    /// the number of completed frames.
    ///
    /// # Errors
    /// System errors other than a full device.
    pub fn send(&mut self, burst: u32) -> io::Result<usize> {
        let sending = &mut self.sending;
        let (transmit, completion) = (&mut sending.transmit, &mut sending.completion);
        let room = FRAMES - self.on_the_way;
        for _ in 0..burst.min(room).min(transmit.free_slots()) {
            transmit.put(libc::xdp_desc {
                addr: PLACE,
                len: self.len,
                options: 0,
            });
            self.on_the_way += 1;
        }
        transmit.submit();
        if let Err(error) = kick(&self.socket) {
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS) => {}
                _ => return Err(error),
            }
        }
        transmit.look();
        let mut done = 0;
        while completion.peek().is_some() {
            completion.advance();
            done += 1;
        }
        completion.release();
        self.on_the_way -= done;
        Ok(done as usize)
    }
}
