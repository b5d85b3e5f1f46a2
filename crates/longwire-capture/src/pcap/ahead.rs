//! Reading ahead: a thread of its own reads and unpacks a file into a few
//! blocks, so that whoever uses them never waits for a disk or a decoder
//! (docs/decisions/0017-reading-traces.md).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

use nix::sys::eventfd::EventFd;

use super::raw::bell;
use super::source::{HEAD_LEN, Stop, block};
use super::unpack::Input;

/// Blocks in use at once. With their 512 KiB they fit in a processor's cache,
/// which is what makes them faster than larger ones; what must come from a
/// disk is fetched further ahead, into the page cache.
const BLOCKS: usize = 8;

/// What the thread hands over.
pub(super) enum Parcel {
    /// A block with so many bytes behind its head, and how much of the file
    /// was used up to them.
    Bytes(Box<[u8]>, usize, u64),
    /// The end of the file.
    End,
    /// Nothing comes after it.
    Fault(Stop),
}

/// A thread that reads ahead.
pub(super) struct ReadAhead {
    parcels: Receiver<Parcel>,
    /// Gives blocks back; `None` while being dropped.
    free: Option<Sender<Box<[u8]>>>,
    ready: Arc<EventFd>,
    stop: Option<Arc<EventFd>>,
    repeat: bool,
    at_start: fn(),
    thread: Option<JoinHandle<Input>>,
}

impl ReadAhead {
    /// Starts to read `input`, if `repeat` over and over again. The thread
    /// calls `at_start` first.
    pub(super) fn start(input: Input, repeat: bool, at_start: fn()) -> io::Result<ReadAhead> {
        let (parcels_in, parcels) = channel();
        let (free, free_out) = channel();
        for _ in 0..BLOCKS {
            // The other end is right here.
            let _ = free.send(block());
        }
        let ready = bell()?;
        let stop = input.stop_bell();
        let reading = Reading {
            input,
            repeat,
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
            ready,
            stop,
            repeat,
            at_start,
            thread: Some(thread),
        })
    }

    /// Whether the file begins again behind its end.
    pub(super) fn repeats(&self) -> bool {
        self.repeat
    }

    /// The function that the thread called first.
    pub(super) fn at_start(&self) -> fn() {
        self.at_start
    }

    /// Ends the thread, and gives its input back.
    pub(super) fn into_input(mut self) -> io::Result<Input> {
        let input = self.end();
        input.ok_or_else(|| io::Error::other("the thread that reads ended"))
    }

    /// Makes [`ReadAhead::readable`] so, although no parcel may have come.
    pub(super) fn ring(&self) {
        // Full only after 2^64 rings that nobody waited for.
        let _ = self.ready.write(1);
    }

    fn end(&mut self) -> Option<Input> {
        self.free = None;
        if let Some(stop) = &self.stop {
            let _ = stop.write(1);
        }
        // A panic in it was told when its parcels ended.
        self.thread.take()?.join().ok()
    }

    /// The next parcel, when it is there.
    pub(super) fn wait(&self) -> Parcel {
        self.parcels.recv().unwrap_or_else(|_| gone())
    }

    /// The next parcel, if it is there.
    pub(super) fn poll(&self) -> Option<Parcel> {
        match self.parcels.try_recv() {
            Ok(parcel) => return Some(parcel),
            Err(TryRecvError::Disconnected) => return Some(gone()),
            Err(TryRecvError::Empty) => {}
        }
        // What comes from here on rings again.
        let _ = self.ready.read();
        match self.parcels.try_recv() {
            Ok(parcel) => Some(parcel),
            Err(TryRecvError::Disconnected) => Some(gone()),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Gives a block back.
    pub(super) fn give_back(&self, block: Box<[u8]>) {
        if let Some(free) = &self.free {
            // After the end nobody takes it.
            let _ = free.send(block);
        }
    }

    /// Becomes readable when a parcel comes after [`ReadAhead::poll`] found
    /// none.
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
fn gone() -> Parcel {
    Parcel::Fault(Stop::Io(io::Error::other("the thread that reads ended")))
}

/// The thread's side.
struct Reading {
    input: Input,
    repeat: bool,
    parcels: Sender<Parcel>,
    free: Receiver<Box<[u8]>>,
    ready: Arc<EventFd>,
}

impl Reading {
    /// Until the input ends, fails, or nobody wants it any more.
    fn run(mut self) -> Input {
        while let Ok(mut block) = self.free.recv() {
            let (len, last) = self.fill(&mut block[HEAD_LEN..]);
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

    /// Fills a block as far as the input does without waiting, and tells what
    /// stands behind it.
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
        // Nobody takes it while the reader is being dropped.
        let _ = self.parcels.send(parcel);
        let _ = self.ready.write(1);
    }
}
