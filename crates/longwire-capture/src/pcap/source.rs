//! Buffered input that tracks its position in the file.

use std::io;
use std::mem;
use std::os::fd::BorrowedFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ahead::{Depth, Parcel, ReadAhead};
use super::unpack::{Input, Packing};

/// Buffer size in bytes: enough for the longest block that must be held as a whole, and small
/// enough to stay in a core's cache.
pub(super) const BUFFER_LEN: usize = 512 * 1024;

/// The reason why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// No data yet: the writer of a pipe is slow.
    Later,
    /// The file is malformed.
    Malformed { offset: u64, reason: String },
    /// The compression is damaged or truncated at this offset in the stored file.
    Packed { offset: u64, reason: String },
    /// The file is valid but not supported.
    Unsupported(String),
    /// A system call failed.
    Io(io::Error),
}

impl Stop {
    #[cold]
    pub(super) fn malformed(offset: u64, reason: impl Into<String>) -> Stop {
        let reason = reason.into();
        Stop::Malformed { offset, reason }
    }
}

/// Result of requesting bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FillResult {
    /// The bytes are in the buffer.
    Ready,
    /// The input ends after this number of bytes.
    Ended(usize),
}

/// Space before the bytes of a block, for a partial record from the previous block and an added
/// Ethernet header.
pub(super) const HEAD_LEN: usize = BUFFER_LEN + 64;

/// Allocates a block: its head, and space for the bytes of one read.
pub(super) fn block() -> Box<[u8]> {
    vec![0; HEAD_LEN + BUFFER_LEN].into_boxed_slice()
}

/// Sequential input in large pieces.
pub(super) struct Source {
    feeder: Feeder,
    /// Whether reads wait for data.
    patient: bool,
    block: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes to be skipped after those in the block.
    skip: u64,
    /// Offset of `block[start]` in the decompressed file.
    offset: u64,
    ended: bool,
    /// Stored bytes consumed up to the start and up to the end of this block, and the number of
    /// bytes decompressed in between.
    stored: (u64, u64, usize),
}

/// Provider of blocks.
enum Feeder {
    /// This thread reads blocks on demand.
    Here(Input),
    /// A separate thread reads ahead.
    Ahead(ReadAhead),
    /// No provider: during a switch between the two, or after a failed one.
    Nothing,
}

impl Source {
    pub(super) fn new(input: Input) -> Source {
        Source {
            feeder: Feeder::Here(input),
            patient: true,
            block: block(),
            start: HEAD_LEN,
            end: HEAD_LEN,
            skip: 0,
            offset: 0,
            ended: false,
            stored: (0, 0, 0),
        }
    }

    /// Starts a separate thread that first calls `at_start` and then reads ahead. With `repeat`,
    /// the thread reads the file again after its end.
    pub(super) fn read_ahead(
        &mut self,
        repeat: bool,
        depth: Depth,
        at_start: fn(),
    ) -> io::Result<()> {
        match mem::replace(&mut self.feeder, Feeder::Nothing) {
            // A file that has been read to its end needs no thread.
            Feeder::Here(input) if self.ended && !repeat => self.feeder = Feeder::Here(input),
            Feeder::Here(mut input) => {
                if self.ended {
                    input.rewind()?;
                }
                self.feeder = Feeder::Ahead(ReadAhead::start(input, repeat, depth, at_start)?);
            }
            other => self.feeder = other,
        }
        Ok(())
    }

    /// Makes reads return [`Stop::Later`] instead of waiting.
    pub(super) fn never_wait(&mut self) {
        self.patient = false;
    }

    /// Returns a descriptor that becomes readable when more data arrives.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        match &self.feeder {
            Feeder::Ahead(ahead) => Some(ahead.readable()),
            Feeder::Here(_) | Feeder::Nothing => None,
        }
    }

    /// Rewinds the file. A thread that does not repeat ends, and the calling thread then reads the
    /// file.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.feeder = match mem::replace(&mut self.feeder, Feeder::Nothing) {
            Feeder::Here(mut input) => {
                input.rewind()?;
                Feeder::Here(input)
            }
            Feeder::Ahead(ahead) if ahead.repeat && self.ended => Feeder::Ahead(ahead),
            Feeder::Ahead(ahead) => {
                let (repeat, depth, at_start) = (ahead.repeat, ahead.depth, ahead.at_start);
                let mut input = ahead.into_input()?;
                input.rewind()?;
                if repeat {
                    Feeder::Ahead(ReadAhead::start(input, true, depth, at_start)?)
                } else {
                    Feeder::Here(input)
                }
            }
            Feeder::Nothing => Feeder::Nothing,
        };
        (self.start, self.end) = (HEAD_LEN, HEAD_LEN);
        (self.skip, self.offset) = (0, 0);
        self.ended = false;
        self.stored = (0, 0, 0);
        Ok(())
    }

    /// Signals the descriptor of [`Source::readable`].
    pub(super) fn ring(&self) {
        if let Feeder::Ahead(ahead) = &self.feeder {
            ahead.ring();
        }
    }

    /// Returns the file's compression, once this thread has read the first byte.
    pub(super) fn packing(&self) -> Option<Packing> {
        match &self.feeder {
            Feeder::Here(input) => input.packing,
            Feeder::Ahead(_) | Feeder::Nothing => None,
        }
    }

    /// Returns the offset of the next byte in the decompressed file.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.skip
    }

    /// Returns the approximate number of stored bytes consumed, interpolated within a block.
    pub(super) fn stored_offset(&self) -> u64 {
        let (before, after, len) = self.stored;
        let left = (self.end - self.start).min(len) as u64;
        match len {
            0 => after,
            // `before` is approximate and may be beyond the end of the file, which is `after`.
            len => after - after.saturating_sub(before) * left / len as u64,
        }
    }

    /// Requests the next `len` bytes, at most [`BUFFER_LEN`].
    #[inline]
    pub(super) fn need(&mut self, len: usize) -> Result<FillResult, Stop> {
        if self.end - self.start >= len && self.skip == 0 {
            return Ok(FillResult::Ready);
        }
        self.fill(len)
    }

    /// Returns the unconsumed bytes in the block.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.block[self.start..self.end]
    }

    /// Consumes `len` bytes of the block. Returns their position for [`Source::at`], which is valid
    /// until the next request for bytes.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) -> usize {
        let at = self.start;
        self.start += len;
        self.offset += len as u64;
        at
    }

    /// Returns bytes consumed since the last [`Source::need`].
    #[inline]
    pub(super) fn at(&self, at: usize, len: usize) -> &[u8] {
        &self.block[at..at + len]
    }

    /// Overwrites consumed bytes, and up to 64 bytes before them.
    pub(super) fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        self.block[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Skips `len` bytes, which may extend beyond the block.
    pub(super) fn skip(&mut self, len: u64) {
        let held = len.min((self.end - self.start) as u64);
        self.consume(held as usize);
        self.skip += len - held;
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<FillResult, Stop> {
        loop {
            let held = self.skip.min((self.end - self.start) as u64);
            self.skip -= held;
            self.consume(held as usize);
            if self.skip == 0 && self.end - self.start >= len {
                return Ok(FillResult::Ready);
            }
            if self.ended {
                return Ok(FillResult::Ended(self.end - self.start));
            }
            match &mut self.feeder {
                Feeder::Here(_) => self.read()?,
                Feeder::Ahead(_) => self.next_block()?,
                Feeder::Nothing => self.ended = true,
            }
        }
    }

    /// Reads more bytes into the block. If there is little space, first moves the unconsumed bytes
    /// to the head.
    fn read(&mut self) -> Result<(), Stop> {
        let Feeder::Here(input) = &mut self.feeder else {
            return Ok(());
        };
        let held = self.end - self.start;
        if held == 0 || self.start > HEAD_LEN {
            self.block
                .copy_within(self.start..self.end, HEAD_LEN - held);
            (self.start, self.end) = (HEAD_LEN - held, HEAD_LEN);
        }
        let before = input.taken();
        let count = input.read(&mut self.block[self.end..])?;
        self.ended = count == 0;
        self.end += count;
        self.stored = (before, input.taken(), count);
        Ok(())
    }

    /// Replaces the block with the next one, prepending the unused bytes of the old one.
    fn next_block(&mut self) -> Result<(), Stop> {
        let Feeder::Ahead(ahead) = &mut self.feeder else {
            return Ok(());
        };
        let parcel = if self.patient {
            ahead.wait()
        } else {
            ahead.poll().ok_or(Stop::Later)?
        };
        match parcel {
            Parcel::Bytes(mut block, len, stored) => {
                let held = self.end - self.start;
                block[HEAD_LEN - held..HEAD_LEN].copy_from_slice(&self.block[self.start..self.end]);
                ahead.give_back(mem::replace(&mut self.block, block));
                (self.start, self.end) = (HEAD_LEN - held, HEAD_LEN + len);
                self.stored = (self.stored.1, stored, len);
            }
            Parcel::End => self.ended = true,
            Parcel::Fault(stop) => return Err(stop),
        }
        Ok(())
    }
}

/// Whether reading or writing `file`, as selected by `events`, would return immediately, if only
/// with end of file or an error.
pub(super) fn is_ready(file: BorrowedFd<'_>, events: PollFlags) -> bool {
    let mut wait = [PollFd::new(file, events)];
    poll(&mut wait, PollTimeout::ZERO).unwrap_or(0) > 0
}

/// A file's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
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

    /// Decodes consecutive 32-bit words in this byte order.
    #[inline]
    pub(super) fn words<const BYTES: usize, const WORDS: usize>(
        self,
        bytes: &[u8; BYTES],
    ) -> [u32; WORDS] {
        std::array::from_fn(|n| self.u32(bytes, 4 * n))
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
