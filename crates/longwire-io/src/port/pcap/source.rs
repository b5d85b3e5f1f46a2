//! Buffered input that knows where in the file it is.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes of the buffer: room for the longest block that must be seen whole,
/// and small enough to stay in a core's cache.
pub(super) const BUFFER_LEN: usize = 512 * 1024;

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// Nothing has come yet: a pipe whose writer is slow.
    Later,
    /// The file is not what it should be.
    Malformed { offset: u64, reason: String },
    /// The file is well, but not for us.
    Unsupported(String),
    /// The system refused to read.
    Io(io::Error),
}

/// What a request for bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// They are in the buffer.
    Ready,
    /// The input ends after this many of them.
    Ended(usize),
}

/// Sequential input in large pieces.
pub(super) struct Source {
    input: Box<dyn Read + Send>,
    /// Polled before each read, where reading could block (pipes, terminals).
    patience: Option<OwnedFd>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes still to be skipped, beyond what the buffer holds.
    skip: u64,
    /// Place in the file of `buffer[start]`.
    offset: u64,
    ended: bool,
}

impl Source {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Source {
        Source {
            input,
            patience: None,
            buffer: vec![0; BUFFER_LEN].into_boxed_slice(),
            start: 0,
            end: 0,
            skip: 0,
            offset: 0,
            ended: false,
        }
    }

    /// From here on, reading gives [`Stop::Later`] while `pipe`, the input
    /// itself, has nothing.
    pub(super) fn never_block(&mut self, pipe: OwnedFd) {
        self.patience = Some(pipe);
    }

    /// Becomes readable when there is more, for inputs that can block.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.patience.as_ref().map(AsFd::as_fd)
    }

    /// Place in the file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.skip
    }

    /// Asks for the next `len` bytes, at most [`BUFFER_LEN`].
    #[inline]
    pub(super) fn need(&mut self, len: usize) -> Result<Filled, Stop> {
        if self.end - self.start >= len && self.skip == 0 {
            return Ok(Filled::Ready);
        }
        self.fill(len)
    }

    /// The bytes in the buffer from the next one on.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Moves on by `len` bytes that are in the buffer. Returns where they
    /// are, for [`Source::at`], until bytes are asked for again.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) -> usize {
        let at = self.start;
        self.start += len;
        self.offset += len as u64;
        at
    }

    /// Bytes that were consumed since the last [`Source::need`].
    #[inline]
    pub(super) fn at(&self, at: usize, len: usize) -> &[u8] {
        &self.buffer[at..at + len]
    }

    /// Moves on by `len` bytes, whether they are in the buffer or not.
    pub(super) fn skip(&mut self, len: u64) {
        let held = len.min((self.end - self.start) as u64);
        self.consume(held as usize);
        self.skip += len - held;
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<Filled, Stop> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            let held = self.skip.min(self.end as u64);
            if held > 0 {
                self.skip -= held;
                self.offset += held;
                self.buffer.copy_within(held as usize..self.end, 0);
                self.end -= held as usize;
            }
            if self.skip == 0 && self.end >= len {
                return Ok(Filled::Ready);
            }
            if self.ended {
                return Ok(Filled::Ended(self.end));
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), Stop> {
        if let Some(file) = &self.patience
            && !is_ready(file.as_fd(), PollFlags::POLLIN)
        {
            return Err(Stop::Later);
        }
        match self.input.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Stop::Later),
            Err(error) => return Err(Stop::Io(error)),
        }
        Ok(())
    }
}

/// Whether a call on `file` would return at once. An end or an error counts:
/// the call then tells which.
pub(super) fn is_ready(file: BorrowedFd<'_>, events: PollFlags) -> bool {
    let mut wait = [PollFd::new(file, events)];
    poll(&mut wait, PollTimeout::ZERO).unwrap_or(0) > 0
}

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(field),
            Order::Big => u16::from_be_bytes(field),
        }
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Little => u32::from_le_bytes(field),
            Order::Big => u32::from_be_bytes(field),
        }
    }
}
