//! Read-ahead: a separate thread reads and decompresses a file into a few blocks, so that the
//! caller never waits for a disk or a decoder (docs/decisions/0017-reading-traces.md).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

use nix::sys::eventfd::EventFd;

use super::raw::bell;
use super::source::{BUFFER_LEN, HEAD_LEN, Stop, block};
use super::unpack::Input;

/// Batch size of a thread that reads or writes a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// 1 MiB in total, for callers that need the CPU cache for other data.
    Small,
    /// Several MiB, to minimise thread wake-ups, each of which takes microseconds.
    Large,
}

impl Batches {
    /// Returns the size of a write buffer in bytes.
    pub(super) const fn buffer_len(self) -> usize {
        match self {
            Batches::Small => 256 * 1024,
            Batches::Large => 1024 * 1024,
        }
    }
}

/// Number and size of the blocks for read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    blocks: usize,
    /// Maximum bytes per block.
    len: usize,
    /// Number of used blocks returned together, because each return may wake the thread, which
    /// takes microseconds. At most half of `blocks`: the thread fills the others meanwhile.
    bunch: usize,
}

impl Depth {
    /// For callers that must not wait. Blocks of 512 KiB fit in the CPU cache, which makes them
    /// faster than larger ones. Data on disk is prefetched further, into the page cache.
    pub const DEEP: Depth = Depth {
        blocks: 8,
        len: BUFFER_LEN,
        bunch: 1,
    };

    /// For callers that may wait.
    pub const fn of(batches: Batches) -> Depth {
        match batches {
            Batches::Small => Depth {
                blocks: 4,
                len: BUFFER_LEN / 2,
                bunch: 2,
            },
            Batches::Large => Depth {
                blocks: 8,
                len: BUFFER_LEN,
                bunch: 4,
            },
        }
    }
}

/// A message from the read-ahead thread.
pub(super) enum Parcel {
    /// A block, the number of bytes after its head, and the number of stored file bytes consumed up
    /// to the block's end.
    Bytes(Box<[u8]>, usize, u64),
    /// End of the file.
    End,
    /// An error; no messages follow.
    Fault(Stop),
}

/// Handle of a reader to its read-ahead thread.
pub(super) struct ReadAhead {
    parcels: Receiver<Parcel>,
    /// Channel for returning blocks to the thread; `None` during drop.
    free: Option<Sender<Box<[u8]>>>,
    /// Used blocks to be returned.
    used: Vec<Box<[u8]>>,
    ready: Arc<EventFd>,
    stop: Option<Arc<EventFd>>,
    /// Whether the file is read again after its end.
    pub(super) repeat: bool,
    pub(super) depth: Depth,
    pub(super) at_start: fn(),
    thread: Option<JoinHandle<Input>>,
}

impl ReadAhead {
    /// Starts a thread that reads `input`, over and over if `repeat` is set. The thread first calls
    /// `at_start`.
    pub(super) fn start(
        input: Input,
        repeat: bool,
        depth: Depth,
        at_start: fn(),
    ) -> io::Result<ReadAhead> {
        let (parcels_in, parcels) = channel();
        let (free, free_out) = channel();
        for _ in 0..depth.blocks {
            // The receiver still exists, so sending succeeds.
            let _ = free.send(block());
        }
        let ready = bell()?;
        let stop = input.stop.clone();
        let reading = ReaderThread {
            input,
            repeat,
            len: depth.len,
            parcels: parcels_in,
            free: free_out,
            ready: Arc::clone(&ready),
        };
        let thread = Builder::new()
            .name("longwire-trace".into())
            .spawn(move || {
                at_start();
                reading.run()
            })?;
        Ok(ReadAhead {
            parcels,
            free: Some(free),
            used: Vec::new(),
            ready,
            stop,
            repeat,
            depth,
            at_start,
            thread: Some(thread),
        })
    }

    /// Ends the thread and returns its input.
    pub(super) fn into_input(mut self) -> io::Result<Input> {
        self.end().ok_or_else(gone)
    }

    /// Signals the descriptor of [`ReadAhead::readable`], even without a message.
    pub(super) fn ring(&self) {
        // The counter is only full after 2^64 rings without a wait.
        let _ = self.ready.write(1);
    }

    fn end(&mut self) -> Option<Input> {
        self.free = None;
        if let Some(stop) = &self.stop {
            let _ = stop.write(1);
        }
        // A panic in the thread was already reported as its last message.
        self.thread.take()?.join().ok()
    }

    /// Waits for the next message.
    pub(super) fn wait(&self) -> Parcel {
        let parcel = self.parcels.recv();
        parcel.unwrap_or_else(|_| Parcel::Fault(Stop::Io(gone())))
    }

    /// Returns the next message, if any.
    pub(super) fn poll(&self) -> Option<Parcel> {
        let received = || match self.parcels.try_recv() {
            Ok(parcel) => Some(parcel),
            Err(TryRecvError::Disconnected) => Some(Parcel::Fault(Stop::Io(gone()))),
            Err(TryRecvError::Empty) => None,
        };
        received().or_else(|| {
            // Later messages signal the descriptor again.
            let _ = self.ready.read();
            received()
        })
    }

    /// Collects a used block; returns all collected blocks to the thread once there are `bunch`.
    pub(super) fn give_back(&mut self, block: Box<[u8]>) {
        self.used.push(block);
        if self.used.len() < self.depth.bunch {
            return;
        }
        if let Some(free) = &self.free {
            for block in self.used.drain(..) {
                // After the end of the file, the thread is gone.
                let _ = free.send(block);
            }
        }
    }

    /// Returns a descriptor that becomes readable when a message arrives after [`ReadAhead::poll`]
    /// returned `None`.
    pub(super) fn readable(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.end();
    }
}

#[cold]
fn gone() -> io::Error {
    io::Error::other("the reader thread ended unexpectedly")
}

/// State of the read-ahead thread.
struct ReaderThread {
    input: Input,
    repeat: bool,
    /// Maximum bytes per block.
    len: usize,
    parcels: Sender<Parcel>,
    free: Receiver<Box<[u8]>>,
    ready: Arc<EventFd>,
}

impl ReaderThread {
    /// Reads until the input ends or fails, or the reader is dropped.
    fn run(mut self) -> Input {
        while let Ok(mut block) = self.free.recv() {
            let (len, last) = self.fill(&mut block[HEAD_LEN..HEAD_LEN + self.len]);
            if len > 0 {
                self.hand_over(Parcel::Bytes(block, len, self.input.taken()));
            }
            match last {
                None => {}
                Some(Parcel::End) if self.repeat => {
                    let rewound = self.input.rewind();
                    self.hand_over(Parcel::End);
                    if let Err(error) = rewound {
                        self.hand_over(Parcel::Fault(Stop::Io(error)));
                        break;
                    }
                }
                Some(parcel) => {
                    self.hand_over(parcel);
                    break;
                }
            }
        }
        self.input
    }

    /// Fills a block with the bytes available without waiting. Returns their number, and the
    /// message to send next.
    fn fill(&mut self, room: &mut [u8]) -> (usize, Option<Parcel>) {
        let mut len = 0;
        while len < room.len() {
            match self.input.read(&mut room[len..]) {
                Ok(0) => return (len, Some(Parcel::End)),
                Ok(count) => len += count,
                Err(stop) => return (len, Some(Parcel::Fault(stop))),
            }
            if self.input.is_slow() {
                break;
            }
        }
        (len, None)
    }

    fn hand_over(&self, parcel: Parcel) {
        // While the reader is being dropped, the receiver is gone.
        let _ = self.parcels.send(parcel);
        let _ = self.ready.write(1);
    }
}
