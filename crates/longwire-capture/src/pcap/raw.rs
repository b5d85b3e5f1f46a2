//! Stored bytes of a file, before decompression.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek};
use std::os::fd::AsFd;
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Bytes read in one call for a decoder. Larger requests bypass the buffer.
const BUFFER_LEN: usize = 128 * 1024;
/// Prefetch distance in bytes: one second at 256 Mbit/s. Prefetched data is in the page cache, not
/// in this process.
const FETCH_AHEAD: u64 = 32 * 1024 * 1024;
/// Bytes per prefetch request.
const FETCH_STEP: u64 = 4 * 1024 * 1024;

/// An input that counts the bytes it returns.
pub(super) struct Raw {
    input: Box<dyn Read + Send>,
    /// The file, if it can be read more than once.
    file: Option<File>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes returned so far.
    pub(super) taken: u64,
    /// Offset up to which prefetching has been requested.
    fetched: u64,
    /// Whether a read reached the end of the input.
    pub(super) ran_out: bool,
    /// The last read error reported by the system; decoders only report that an error occurred.
    pub(super) fault: Option<io::Error>,
}

impl Raw {
    /// Reads a file. `stop` ends a read that is waiting for a pipe's writer.
    pub(super) fn of_file(file: File, stop: &Arc<EventFd>) -> io::Result<Raw> {
        let seekable = file.metadata()?.is_file();
        if !seekable {
            let stop = Arc::clone(stop);
            return Ok(Raw::of(Box::new(StoppablePipe { file, stop })));
        }
        let mut raw = Raw::of(Box::new(file.try_clone()?));
        // A hint only; without it, reading from disk is slower.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_SEQUENTIAL);
        raw.file = Some(file);
        Ok(raw)
    }

    /// Reads an input that cannot be rewound.
    pub(super) fn of(input: Box<dyn Read + Send>) -> Raw {
        Raw {
            input,
            file: None,
            buffer: Box::default(),
            start: 0,
            end: 0,
            taken: 0,
            fetched: 0,
            ran_out: false,
            fault: None,
        }
    }

    /// Whether the input can be read again from its beginning.
    pub(super) fn is_repeatable(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn rewind(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::ErrorKind::NotSeekable.into());
        };
        file.rewind()?;
        (self.start, self.end) = (0, 0);
        (self.taken, self.fetched) = (0, 0);
        self.ran_out = false;
        Ok(())
    }

    /// Returns the next `len` bytes without consuming them, or fewer at the end of the input.
    pub(super) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        self.make_buffer();
        while self.end - self.start < len {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            match read_once(&mut *self.input, &mut self.buffer[self.end..])? {
                0 => break,
                count => self.end += count,
            }
        }
        let end = self.end.min(self.start + len);
        Ok(&self.buffer[self.start..end])
    }

    /// Skips `len` bytes. Returns `false` if the input ends earlier.
    pub(super) fn pass_over(&mut self, mut len: u64) -> io::Result<bool> {
        while len > 0 {
            let held = self.fill_buf()?.len() as u64;
            if held == 0 {
                return Ok(false);
            }
            let count = held.min(len);
            self.consume(count as usize);
            len -= count;
        }
        Ok(true)
    }

    /// Allocates the buffer, which uncompressed files never need, because they are read in large
    /// pieces.
    fn make_buffer(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_LEN].into_boxed_slice();
        }
    }

    /// Prefetches from disk while the process uses earlier bytes.
    fn fetch(&mut self) {
        let Some(file) = &self.file else { return };
        if let Some((from, len)) = next_fetch(self.taken, &mut self.fetched) {
            let advice = PosixFadviseAdvice::POSIX_FADV_WILLNEED;
            let _ = posix_fadvise(file, from as i64, len as i64, advice);
        }
    }

    fn failed(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.fault = Some(error);
        kind.into()
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && out.len() >= BUFFER_LEN {
            self.fetch();
            let read = read_once(&mut *self.input, out);
            let count = read.map_err(|error| self.failed(error))?;
            self.ran_out |= count == 0;
            self.taken += count as u64;
            return Ok(count);
        }
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.make_buffer();
            self.fetch();
            (self.start, self.end) = (0, 0);
            let read = read_once(&mut *self.input, &mut self.buffer);
            self.end = read.map_err(|error| self.failed(error))?;
            self.ran_out |= self.end == 0;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.taken += count as u64;
    }
}

/// Returns the offset and length of the next prefetch request, if one is due, and advances
/// `fetched`, the end of the requests. `taken` bytes have been read.
fn next_fetch(taken: u64, fetched: &mut u64) -> Option<(u64, u64)> {
    let from = taken.max(*fetched);
    let len = (taken + FETCH_AHEAD).saturating_sub(from);
    (len >= FETCH_STEP).then(|| {
        *fetched = from + len;
        (from, len)
    })
}

fn read_once(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A pipe or terminal, whose writer may be slow or stop writing.
struct StoppablePipe {
    file: File,
    stop: Arc<EventFd>,
}

impl Read for StoppablePipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut wait = [
                PollFd::new(self.file.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut wait, PollTimeout::NONE) {
                Err(nix::Error::EINTR) => continue,
                result => result?,
            };
            if wait[1].any() == Some(true) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// Creates an event that wakes a waiting thread; reading it never blocks.
pub(super) fn bell() -> io::Result<Arc<EventFd>> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    Ok(Arc::new(EventFd::from_value_and_flags(0, flags)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_requests_leave_no_gap_and_stay_ahead() {
        let (mut fetched, mut end) = (0, 0);
        for taken in (0..4 * FETCH_AHEAD).step_by(BUFFER_LEN) {
            if let Some((from, len)) = next_fetch(taken, &mut fetched) {
                assert_eq!((from, fetched), (end, from + len));
                end = fetched;
            }
            assert!(fetched <= taken + FETCH_AHEAD);
            assert!(fetched > taken + FETCH_AHEAD - FETCH_STEP);
        }
        // A reader that has jumped ahead does not prefetch what it has passed.
        let taken = fetched + FETCH_STEP;
        assert_eq!(next_fetch(taken, &mut fetched), Some((taken, FETCH_AHEAD)));
    }
}
