//! Asynchronous writing: a separate thread writes gathered bytes to a file, so that the caller
//! does not wait for the copy into the page cache
//! (docs/decisions/0035-offline.md).

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Buffers in use at once, including that of the caller. When the thread holds the rest,
/// the caller waits.
const BUFFERS: usize = 3;

/// A thread that writes the bytes that it is given, in their order.
pub(super) struct WriteBehind {
    /// `None` after the end.
    full: Option<Sender<Vec<u8>>>,
    /// Empty buffers, or the error that ended the thread, after which none follows.
    empty: Receiver<io::Result<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl WriteBehind {
    /// Starts a thread that writes to `file`, and calls `at_start` first. Its buffers have
    /// room for `len` bytes.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(mut file: File, len: usize, at_start: fn()) -> io::Result<WriteBehind> {
        let (full, buffers) = channel::<Vec<u8>>();
        let (give_back, empty) = channel();
        for _ in 1..BUFFERS {
            // The receiving end exists here, so sending succeeds.
            let _ = give_back.send(Ok(Vec::with_capacity(len)));
        }
        let thread = Builder::new()
            .name("longwire-write".into())
            .spawn(move || {
                at_start();
                for mut buffer in buffers {
                    let written = file.write_all(&buffer);
                    let failed = written.is_err();
                    buffer.clear();
                    // The caller is gone while it is being dropped.
                    let _ = give_back.send(written.map(|()| buffer));
                    if failed {
                        return;
                    }
                }
            })?;
        Ok(WriteBehind {
            full: Some(full),
            empty,
            thread: Some(thread),
        })
    }

    /// Hands over the bytes of `buffer`, and replaces it by an empty one. Waits while the
    /// thread has all other buffers.
    ///
    /// # Errors
    /// Errors of the system, also about bytes that were handed over before.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let empty = self.empty.recv().unwrap_or_else(|_| Err(gone()))?;
        let full = mem::replace(buffer, empty);
        let sent = self.full.as_ref().map(|thread| thread.send(full));
        match sent {
            Some(Ok(())) => Ok(()),
            // The thread has failed since.
            _ => self.finish().and(Err(gone())),
        }
    }

    /// Waits until all bytes are written.
    ///
    /// # Errors
    /// Errors of the system; each is reported once.
    pub fn finish(&mut self) -> io::Result<()> {
        self.full = None;
        let written = self.empty.iter().try_for_each(|result| result.map(drop));
        let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
        written.and(ended.map_err(|_| gone()))
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // Dropping cannot report an error; `finish` does.
        let _ = self.finish();
    }
}

#[cold]
fn gone() -> io::Error {
    io::Error::other("the thread that writes ended")
}

/// Batch size of a thread that reads or writes a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// 1 MiB in total: for a caller that needs the CPU cache for other data.
    Small,
    /// Several MiB: the fewest wake-ups of threads, each of which takes microseconds.
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
