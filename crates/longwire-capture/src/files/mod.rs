//! Reading of the files specified in a user's models.
//!
//! Only regular files are read: a FIFO, socket or device may block forever, and opening some
//! devices has side effects. A regular file may block too, for example on a network file system.
//! Therefore, a separate thread opens and reads the file, and the reader gives up at a deadline.

mod access;

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::unistd::gettid;

pub use access::{Directory, FileAccess};

/// Bytes per read; enough for processing to dominate system calls.
const PIECE: usize = 64 * 1024;

/// Interval at which a waiting reader checks the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Stack size of a file-reading thread.
const STACK: usize = 128 * 1024;

/// The reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FileError {
    #[error("cannot read standard input in this context; name a file")]
    StandardInput,
    #[error("no such file")]
    Missing,
    #[error("permission denied")]
    Forbidden,
    #[error("a directory; name a file")]
    Directory,
    #[error("a {0}, not a regular file; copy its contents to a file")]
    NotRegular(&'static str),
    #[error("not in {}, the only directory that changes may read files from", .0.display())]
    Outside(PathBuf),
    #[error("a relative path; a service reads absolute paths only")]
    Relative,
    #[error("{0}")]
    Refused(&'static str),
    #[error("larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
    #[error("not read within {} s", .0.as_secs())]
    Late(Duration),
    #[error("not read: the run is stopping")]
    Stopped,
    #[error("read failed before the end: {0}")]
    Read(io::Error),
    #[error("{0}")]
    Open(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        match error.kind() {
            ErrorKind::NotFound => FileError::Missing,
            ErrorKind::PermissionDenied => FileError::Forbidden,
            _ => FileError::Open(error),
        }
    }
}

/// Size and time limits for reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum size in bytes.
    pub bytes: u64,
    /// Maximum wait for the file.
    pub time: Duration,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            bytes: 1 << 30,
            time: Duration::from_secs(30),
        }
    }
}

/// A regular file read by a separate thread.
#[derive(Debug)]
pub struct FileReader {
    pieces: Receiver<Result<Vec<u8>, FileError>>,
    thread: Option<JoinHandle<()>>,
    id: Arc<AtomicI32>,
    time: Duration,
    waited: Duration,
    stop: Option<Arc<AtomicBool>>,
    /// Received bytes not yet returned.
    piece: Vec<u8>,
    taken: usize,
}

impl FileReader {
    /// Starts opening and reading a file. Setting `stop` ends a wait for the file.
    ///
    /// # Errors
    /// If the path is refused, or no thread can be started.
    pub fn open(
        path: &Path,
        access: &FileAccess,
        limits: ReadLimits,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<FileReader, FileError> {
        access.check(path)?;
        if path == Path::new("-") {
            // Both directions of a link may read a file, but standard input can only be read once.
            return Err(FileError::StandardInput);
        }
        let (sender, pieces) = sync_channel(4);
        let id = Arc::new(AtomicI32::new(0));
        let (path, access, own) = (path.to_owned(), access.clone(), Arc::clone(&id));
        let read = move || {
            own.store(gettid().as_raw(), Ordering::Relaxed);
            if let Err(error) = send(&path, &access, limits.bytes, &sender) {
                // If the reader is gone, nothing receives the error.
                let _ = sender.send(Err(error));
            }
        };
        let thread = thread::Builder::new()
            .name("longwire-file".to_owned())
            .stack_size(STACK)
            .spawn(read)
            .map_err(FileError::Open)?;
        Ok(FileReader {
            pieces,
            thread: Some(thread),
            id,
            time: limits.time,
            waited: Duration::ZERO,
            stop,
            piece: Vec::new(),
            taken: 0,
        })
    }

    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read within the limits, or `stop` is set.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, FileError> {
        loop {
            let left = self.time.saturating_sub(self.waited);
            let began = Instant::now();
            let received = self.pieces.recv_timeout(left.min(LOOK));
            self.waited += began.elapsed();
            match received {
                Ok(piece) => return piece.map(Some),
                Err(RecvTimeoutError::Disconnected) => {
                    self.finish();
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) if self.is_stopped() => {
                    return Err(FileError::Stopped);
                }
                Err(RecvTimeoutError::Timeout) if self.waited >= self.time => {
                    return Err(FileError::Late(self.time));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn is_stopped(&self) -> bool {
        let stop = self.stop.as_ref();
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Waits until the thread is gone, because a process must be single-threaded to enter a user
    /// namespace. Joining is not enough: it returns shortly before the kernel removes the thread.
    fn finish(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let _ = thread.join();
        let task = format!("/proc/self/task/{}", self.id.load(Ordering::Relaxed));
        let began = Instant::now();
        while Path::new(&task).exists() && began.elapsed() < Duration::from_secs(1) {
            thread::yield_now();
        }
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            match self.next_piece() {
                Ok(Some(piece)) => (self.piece, self.taken) = (piece, 0),
                Ok(None) => return Ok(0),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let length = (&self.piece[self.taken..]).read(buffer)?;
        self.taken += length;
        Ok(length)
    }
}

/// Reads a file to its end, or until the receiver is dropped.
fn send(
    path: &Path,
    access: &FileAccess,
    most: u64,
    sender: &SyncSender<Result<Vec<u8>, FileError>>,
) -> Result<(), FileError> {
    let mut file = access.open_regular(path)?;
    if file.metadata()?.len() > most {
        return Err(FileError::TooLarge(most));
    }
    let mut sent = 0;
    loop {
        let mut piece = vec![0; PIECE];
        let length = match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(FileError::Read(error)),
        };
        sent += length as u64;
        if sent > most {
            return Err(FileError::TooLarge(most));
        }
        piece.truncate(length);
        if sender.send(Ok(piece)).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a reader whose file never responds, and the sender that keeps the file open.
    fn silent(
        time: Duration,
        stop: Option<Arc<AtomicBool>>,
    ) -> (FileReader, SyncSender<Result<Vec<u8>, FileError>>) {
        let (sender, pieces) = sync_channel(1);
        let reader = FileReader {
            pieces,
            thread: None,
            id: Arc::default(),
            time,
            waited: Duration::ZERO,
            stop,
            piece: Vec::new(),
            taken: 0,
        };
        (reader, sender)
    }

    #[test]
    fn a_file_that_does_not_answer_is_given_up() {
        let (mut reader, sender) = silent(Duration::from_millis(120), None);
        sender.send(Ok(vec![1])).expect("there is room");
        assert!(matches!(reader.next_piece(), Ok(Some(piece)) if piece == [1]));
        let began = Instant::now();
        assert!(matches!(reader.next_piece(), Err(FileError::Late(_))));
        assert!(began.elapsed() >= Duration::from_millis(110));
    }

    #[test]
    fn a_stopping_run_waits_for_no_file() {
        let stop = Arc::new(AtomicBool::new(true));
        let (mut reader, _sender) = silent(Duration::from_secs(3600), Some(stop));
        assert!(matches!(reader.next_piece(), Err(FileError::Stopped)));
    }
}
