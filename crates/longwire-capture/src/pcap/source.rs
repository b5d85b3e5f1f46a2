//! Buffered input that knows where in the file it is.

use std::io;
use std::mem;
use std::os::fd::BorrowedFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ahead::{Parcel, ReadAhead};
use super::unpack::{Input, Packing};

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
    /// What packs the file is damaged or cut, at a place in the stored file.
    Packed { offset: u64, reason: String },
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

/// Room before the bytes of a block: for the part of a record that the block
/// before it ends with, and for an Ethernet header that a frame is given.
pub(super) const HEAD_LEN: usize = BUFFER_LEN + 64;

/// A block's memory: its head, and then what is read at once.
pub(super) fn block() -> Box<[u8]> {
    vec![0; HEAD_LEN + BUFFER_LEN].into_boxed_slice()
}

/// Sequential input in large pieces.
pub(super) struct Source {
    feeder: Feeder,
    /// Whether to wait for what has not come yet.
    patient: bool,
    block: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes still to be skipped, beyond what the block holds.
    skip: u64,
    /// Place in the unpacked file of `block[start]`.
    offset: u64,
    ended: bool,
    /// How much of the stored file was used before this block and up to its
    /// end, and how many bytes were unpacked from it.
    stored: (u64, u64, usize),
}

/// Where blocks come from.
enum Feeder {
    /// Read when they are needed.
    Here(Input),
    /// Read before.
    Ahead(ReadAhead),
    /// While it passes from the one to the other, or where that failed.
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

    /// From here on, a thread of its own reads ahead, which calls `at_start`
    /// first; with `repeat`, the file begins again behind its end.
    pub(super) fn read_ahead(&mut self, repeat: bool, at_start: fn()) -> io::Result<()> {
        match mem::replace(&mut self.feeder, Feeder::Nothing) {
            // Short files end before anybody thought of reading ahead.
            Feeder::Here(input) if self.ended && !repeat => self.feeder = Feeder::Here(input),
            Feeder::Here(mut input) => {
                if self.ended {
                    input.rewind()?;
                }
                self.feeder = Feeder::Ahead(ReadAhead::start(input, repeat, at_start)?);
            }
            other => self.feeder = other,
        }
        Ok(())
    }

    /// From here on, reading gives [`Stop::Later`] while nothing has come.
    pub(super) fn never_wait(&mut self) {
        self.patient = false;
    }

    /// Becomes readable when there is more.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        match &self.feeder {
            Feeder::Ahead(ahead) => Some(ahead.readable()),
            Feeder::Here(_) | Feeder::Nothing => None,
        }
    }

    /// Begins the file again. A thread that was not told to repeat it ends,
    /// and the file is read here.
    pub(super) fn again(&mut self) -> io::Result<()> {
        self.feeder = match mem::replace(&mut self.feeder, Feeder::Nothing) {
            Feeder::Here(mut input) => {
                input.rewind()?;
                Feeder::Here(input)
            }
            Feeder::Ahead(ahead) if ahead.repeats() && self.ended => Feeder::Ahead(ahead),
            Feeder::Ahead(ahead) => {
                let (repeat, at_start) = (ahead.repeats(), ahead.at_start());
                let mut input = ahead.into_input()?;
                input.rewind()?;
                match repeat {
                    true => Feeder::Ahead(ReadAhead::start(input, true, at_start)?),
                    false => Feeder::Here(input),
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

    /// Makes [`Source::readable`] so.
    pub(super) fn ring(&self) {
        if let Feeder::Ahead(ahead) = &self.feeder {
            ahead.ring();
        }
    }

    /// How the file is packed, once its first byte was read here.
    pub(super) fn packing(&self) -> Option<Packing> {
        match &self.feeder {
            Feeder::Here(input) => input.packing(),
            Feeder::Ahead(_) | Feeder::Nothing => None,
        }
    }

    /// Place in the unpacked file of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.skip
    }

    /// How much of the stored file was used, as near as can be said: within a
    /// block by the share of its bytes.
    pub(super) fn stored_offset(&self) -> u64 {
        let (before, after, len) = self.stored;
        let left = (self.end - self.start).min(len) as u64;
        match len {
            0 => after,
            // A file that ends early was used up to less than was said before.
            len => after - after.saturating_sub(before) * left / len as u64,
        }
    }

    /// Asks for the next `len` bytes, at most [`BUFFER_LEN`].
    #[inline]
    pub(super) fn need(&mut self, len: usize) -> Result<Filled, Stop> {
        if self.end - self.start >= len && self.skip == 0 {
            return Ok(Filled::Ready);
        }
        self.fill(len)
    }

    /// The bytes in the block from the next one on.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.block[self.start..self.end]
    }

    /// Moves on by `len` bytes that are in the block. Returns where they
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
        &self.block[at..at + len]
    }

    /// Writes over bytes that were consumed, and up to 64 before them.
    pub(super) fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        self.block[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Moves on by `len` bytes, whether they are in the block or not.
    pub(super) fn skip(&mut self, len: u64) {
        let held = len.min((self.end - self.start) as u64);
        self.consume(held as usize);
        self.skip += len - held;
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<Filled, Stop> {
        loop {
            let held = self.skip.min((self.end - self.start) as u64);
            self.skip -= held;
            self.consume(held as usize);
            if self.skip == 0 && self.end - self.start >= len {
                return Ok(Filled::Ready);
            }
            if self.ended {
                return Ok(Filled::Ended(self.end - self.start));
            }
            match &mut self.feeder {
                Feeder::Here(_) => self.read()?,
                Feeder::Ahead(_) => self.next_block()?,
                Feeder::Nothing => self.ended = true,
            }
        }
    }

    /// Reads behind what is held, which moves to the head if there is little
    /// room.
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

    /// Takes the next block over, with what is held of this one before it.
    fn next_block(&mut self) -> Result<(), Stop> {
        let Feeder::Ahead(ahead) = &mut self.feeder else {
            return Ok(());
        };
        let parcel = match self.patient {
            true => ahead.wait(),
            false => ahead.poll().ok_or(Stop::Later)?,
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

    /// Words that follow one another.
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
