//! Writing of capture files, as nanosecond pcap or pcapng. A separate thread may write the buffered
//! bytes to the file, so that the caller does not wait for the copy into the page cache
//! (docs/decisions/0035-offline.md).

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use longwire_engine::Nanos;
use nix::poll::PollFlags;

use super::ahead::Batches;
use super::source::is_ready;
use super::{CAPTURED_MAX, CaptureError, link_type};
use crate::open;

/// Number of buffered bytes that triggers a write.
const GATHER_LEN: usize = 256 * 1024;
/// Number of bytes in blocks below which copying them is cheaper than a write.
const COPIED_BLOCKS: usize = 32 * 1024;
/// Bytes of an enhanced packet block (type 6) before the frame: seven words.
const BLOCK_HEADER: usize = 28;
/// Number of bytes that a writable pipe accepts without blocking (PIPE_BUF).
const PIPE_PIECE: usize = 4096;

/// Format of an output capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Classic pcap with nanosecond timestamps (magic a1b23c4d).
    PcapNanos,
    /// pcapng with one section and nanosecond timestamps.
    Pcapng,
}

impl CaptureFormat {
    /// Returns the format that corresponds to a file name's extension. `-`, standard output, is
    /// pcap; other names give `None`.
    pub fn of(path: &str) -> Option<CaptureFormat> {
        match path.rsplit_once('.') {
            _ if path == "-" => Some(CaptureFormat::PcapNanos),
            Some((_, "pcap")) => Some(CaptureFormat::PcapNanos),
            Some((_, "pcapng")) => Some(CaptureFormat::Pcapng),
            _ => None,
        }
    }
}

/// Writes a capture file. Timestamps are exact to the nanosecond.
///
/// Call [`CaptureWriter::finish`] at the end. Dropping also writes the remaining bytes, but cannot
/// report errors.
pub struct CaptureWriter {
    name: String,
    file: File,
    pipe: bool,
    format: CaptureFormat,
    buffer: Vec<u8>,
    /// Number of bytes in the buffer that are already written.
    written: usize,
    /// Number of buffered bytes that triggers a write or a handover.
    full_at: usize,
    thread: WriterThread,
}

/// Whether a separate thread writes full buffers.
enum WriterThread {
    /// Buffers are written by the caller.
    None,
    /// The thread is started at the first full buffer; a short capture needs none.
    Requested(fn()),
    Running(Box<WriteBehind>),
}

impl CaptureWriter {
    /// Creates or truncates the file. `.pcap` selects nanosecond pcap, `.pcapng` pcapng, and `-`
    /// pcap on standard output.
    ///
    /// # Errors
    /// If the file cannot be created or has another extension.
    pub fn create(path: &str) -> Result<CaptureWriter, CaptureError> {
        CaptureWriter::create_for(path, &[], CAPTURED_MAX)
    }

    /// Like [`CaptureWriter::create`], with one interface per name, in this order; only for pcapng.
    /// The interfaces state `snap_len`, the maximum number of bytes that the caller keeps per frame.
    ///
    /// # Errors
    /// The errors of [`CaptureWriter::create`], and an error if the file name selects pcap, which
    /// has no interfaces.
    pub fn create_for(
        path: &str,
        interfaces: &[&str],
        snap_len: u32,
    ) -> Result<CaptureWriter, CaptureError> {
        let Some(format) = CaptureFormat::of(path) else {
            let reason = "the name of a capture must end in .pcap or .pcapng";
            return Err(CaptureError::unsupported(path, reason));
        };
        if format == CaptureFormat::PcapNanos && !interfaces.is_empty() {
            let reason = "pcap cannot record the port of a frame; use .pcapng";
            return Err(CaptureError::unsupported(path, reason));
        }
        let opened = open_output(path);
        let file = opened.map_err(|error| CaptureError::file(path, "creating", error))?;
        let pipe = !file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut buffer = Vec::with_capacity(2 * GATHER_LEN);
        match format {
            CaptureFormat::PcapNanos => push_pcap_header(&mut buffer),
            CaptureFormat::Pcapng => push_ng_header(&mut buffer, interfaces, snap_len),
        }
        Ok(CaptureWriter {
            name: path.into(),
            file,
            pipe,
            format,
            buffer,
            written: 0,
            full_at: GATHER_LEN,
            thread: WriterThread::None,
        })
    }

    /// Starts a separate thread that writes full buffers while the caller fills the next ones. The
    /// thread first calls `at_start`, for example to drop privileges that writing to an open file
    /// does not need. System errors are then reported by a later call.
    pub fn write_behind(&mut self, batches: Batches, at_start: fn()) {
        if matches!(self.thread, WriterThread::None) {
            self.thread = WriterThread::Requested(at_start);
            self.full_at = batches.buffer_len();
        }
    }

    /// Appends a frame captured at `stamp` (Unix time, UTC) that had `wire_len` bytes on the wire,
    /// of which `bytes` are kept.
    ///
    /// # Errors
    /// System errors, such as a full disk; a frame above 256 KiB; a time after 2106 in classic
    /// pcap.
    #[inline]
    pub fn write(&mut self, stamp: Nanos, bytes: &[u8], wire_len: u32) -> Result<(), CaptureError> {
        self.write_on(0, stamp, bytes, wire_len)
    }

    /// Like [`CaptureWriter::write`], for the interface with this index among the names passed to
    /// [`CaptureWriter::create_for`].
    ///
    /// # Errors
    /// The errors of [`CaptureWriter::write`].
    #[inline(always)]
    pub fn write_on(
        &mut self,
        interface: u32,
        stamp: Nanos,
        bytes: &[u8],
        wire_len: u32,
    ) -> Result<(), CaptureError> {
        self.gather(interface, stamp, bytes, wire_len)?;
        if self.gathered() >= self.full_at {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Appends pcapng blocks completed by [`complete_block`]. Many blocks are written without
    /// another copy.
    ///
    /// # Errors
    /// System errors; classic pcap has no blocks.
    pub fn write_blocks(&mut self, blocks: &[u8]) -> Result<(), CaptureError> {
        if self.format != CaptureFormat::Pcapng {
            let reason = "pcap has no blocks; use .pcapng";
            return Err(CaptureError::unsupported(&self.name, reason));
        }
        if blocks.len() < COPIED_BLOCKS {
            self.buffer.extend_from_slice(blocks);
            if self.gathered() >= self.full_at {
                self.pass_on()?;
            }
            return Ok(());
        }
        self.flush()?;
        let written = self.file.write_all(blocks);
        written.map_err(|error| CaptureError::file(&self.name, "writing", error))
    }

    /// Writes a full buffer, or hands it to the writer thread.
    #[inline(never)]
    fn pass_on(&mut self) -> Result<(), CaptureError> {
        if let WriterThread::Requested(at_start) = self.thread {
            let file = self.file.try_clone();
            let room = self.full_at + GATHER_LEN;
            let start = |file| WriteBehind::start(file, room, at_start);
            // Without a thread, writing is only slower.
            let thread = file.and_then(start).map(Box::new);
            self.thread = thread.map_or(WriterThread::None, WriterThread::Running);
        }
        match &mut self.thread {
            WriterThread::Running(thread) if self.written == 0 => {
                let result = thread.write(&mut self.buffer);
                result.map_err(|error| CaptureError::file(&self.name, "writing", error))
            }
            _ => self.flush(),
        }
    }

    /// Writes all buffered bytes to the file.
    ///
    /// # Errors
    /// System errors.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let before = match std::mem::replace(&mut self.thread, WriterThread::None) {
            WriterThread::Running(mut thread) => thread.finish(),
            WriterThread::None | WriterThread::Requested(_) => Ok(()),
        };
        let result = before.and_then(|()| self.file.write_all(&self.buffer[self.written..]));
        self.buffer.clear();
        self.written = 0;
        result.map_err(|error| CaptureError::file(&self.name, "writing", error))
    }

    /// Writes the remaining bytes and closes the file.
    ///
    /// # Errors
    /// System errors.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.flush()
    }

    /// Returns the file's name for error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of buffered bytes not yet written.
    pub fn gathered(&self) -> usize {
        self.buffer.len() - self.written
    }

    /// Like [`CaptureWriter::write_on`], but only buffers the frame, to be written by
    /// [`CaptureWriter::drain`] or [`CaptureWriter::flush`].
    ///
    /// # Errors
    /// A frame above 256 KiB; a time after 2106 in classic pcap.
    #[inline(always)]
    pub fn gather(
        &mut self,
        interface: u32,
        stamp: Nanos,
        bytes: &[u8],
        wire_len: u32,
    ) -> Result<(), CaptureError> {
        if bytes.len() > CAPTURED_MAX as usize {
            let reason = format!(
                "frame of {} bytes; the maximum is {CAPTURED_MAX}",
                bytes.len()
            );
            return Err(CaptureError::unsupported(&self.name, reason));
        }
        match self.format {
            CaptureFormat::PcapNanos => self.push_record(stamp, bytes, wire_len),
            CaptureFormat::Pcapng => {
                self.push_block(interface, stamp, bytes, wire_len);
                Ok(())
            }
        }
    }

    /// Writes as many bytes as possible without blocking; a file on disk accepts all of them.
    /// Returns whether all bytes are written.
    ///
    /// # Errors
    /// Kernel errors.
    pub fn drain(&mut self) -> Result<bool, CaptureError> {
        if !self.pipe || matches!(self.thread, WriterThread::Running(_)) {
            self.flush()?;
            return Ok(true);
        }
        while self.gathered() > 0 && is_ready(self.file.as_fd(), PollFlags::POLLOUT) {
            let end = self.buffer.len().min(self.written + PIPE_PIECE);
            match self.file.write(&self.buffer[self.written..end]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(CaptureError::file(&self.name, "writing", error)),
            }
        }
        // Moving the remaining bytes is worthwhile only once the written part is large.
        if self.gathered() == 0 || self.written > GATHER_LEN {
            self.buffer.drain(..self.written);
            self.written = 0;
        }
        Ok(self.gathered() == 0)
    }

    #[inline(always)]
    fn push_record(
        &mut self,
        stamp: Nanos,
        bytes: &[u8],
        wire_len: u32,
    ) -> Result<(), CaptureError> {
        let nanos = stamp.as_nanos();
        let Ok(seconds) = u32::try_from(nanos / 1_000_000_000) else {
            let reason = "pcap cannot store times after 2106; use .pcapng";
            return Err(CaptureError::unsupported(&self.name, reason));
        };
        let header = [
            seconds,
            (nanos % 1_000_000_000) as u32,
            bytes.len() as u32,
            wire_len,
        ];
        let header = header.map(u32::to_le_bytes);
        self.buffer.extend_from_slice(header.as_flattened());
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn push_block(&mut self, interface: u32, stamp: Nanos, bytes: &[u8], wire_len: u32) {
        let header = block_header(interface, stamp, bytes.len(), wire_len);
        push_words(&mut self.buffer, &header);
        self.buffer.extend_from_slice(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.buffer.extend_from_slice(&[0; 3][..padding]);
        push_words(&mut self.buffer, &[header[1]]);
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        // Dropping cannot report errors; `finish` does.
        let _ = self.flush();
    }
}

/// Appends a frame to `blocks`, with room for the rest of its pcapng block. Returns the frame's
/// range.
#[inline]
pub fn push_frame(blocks: &mut Vec<u8>, frame: &[u8]) -> Range<usize> {
    blocks.extend_from_slice(&[0; BLOCK_HEADER]);
    let start = blocks.len();
    blocks.extend_from_slice(frame);
    let end = blocks.len();
    let padding = frame.len().next_multiple_of(4) - frame.len();
    // The padding, and the block's length.
    blocks.extend_from_slice(&[0; 3 + 4][..padding + 4]);
    start..end
}

/// Completes the block of a frame at `frame` in `blocks`, added by [`push_frame`]: captured on
/// `interface` at `stamp` (Unix time, UTC), with `wire_len` bytes on the wire. Returns the block's
/// range.
///
/// # Panics
/// If [`push_frame`] did not return this range.
#[inline]
pub fn complete_block(
    blocks: &mut [u8],
    frame: Range<usize>,
    interface: u32,
    stamp: Nanos,
    wire_len: u32,
) -> Range<usize> {
    let header = block_header(interface, stamp, frame.len(), wire_len);
    let len = header[1] as usize;
    let start = frame.start - BLOCK_HEADER;
    let block = &mut blocks[start..start + len];
    for (at, word) in header.iter().enumerate() {
        block[4 * at..][..4].copy_from_slice(&word.to_le_bytes());
    }
    block[len - 4..].copy_from_slice(&header[1].to_le_bytes());
    start..start + len
}

/// Returns an enhanced packet block's header. Its second word is the block's length, which is
/// repeated at the end.
#[inline]
fn block_header(interface: u32, stamp: Nanos, captured: usize, wire_len: u32) -> [u32; 7] {
    let nanos = stamp.as_nanos();
    [
        6,
        (BLOCK_HEADER + captured.next_multiple_of(4) + 4) as u32,
        interface,
        (nanos >> 32) as u32,
        nanos as u32,
        captured as u32,
        wire_len,
    ]
}

fn open_output(path: &str) -> io::Result<File> {
    if path == "-" {
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    open::to_write(path)
}

#[inline]
fn push_words(buffer: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
}

/// Appends magic, version 2.4, two unused words, snapshot length and link type.
fn push_pcap_header(buffer: &mut Vec<u8>) {
    let header = [
        0xa1b2_3c4d,
        0x0004_0002,
        0,
        0,
        CAPTURED_MAX,
        link_type::ETHERNET,
    ];
    push_words(buffer, &header);
}

/// Appends a section header with unknown length, and one interface per name with the options
/// `if_name` (2) and `if_tsresol` (9, nanoseconds). Without names, appends one unnamed interface.
fn push_ng_header(buffer: &mut Vec<u8>, names: &[&str], snap_len: u32) {
    let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    push_words(buffer, &section);
    let unnamed: &[&str] = &[""];
    for name in if names.is_empty() { unnamed } else { names } {
        let name = &name.as_bytes()[..name.len().min(usize::from(u16::MAX))];
        let mut options = Vec::new();
        if !name.is_empty() {
            push_words(&mut options, &[(name.len() as u32) << 16 | 2]);
            options.extend_from_slice(name);
            options.resize(options.len().next_multiple_of(4), 0);
        }
        push_words(&mut options, &[0x0001_0009, 9, 0]);
        let len = 20 + options.len() as u32;
        push_words(buffer, &[1, len, link_type::ETHERNET, snap_len]);
        buffer.extend_from_slice(&options);
        push_words(buffer, &[len]);
    }
}

/// Number of buffers, including the caller's. The caller waits while the thread has the other two.
const BUFFERS: usize = 3;

/// A thread that writes buffers in the order of their handover.
pub(super) struct WriteBehind {
    /// `None` once the thread has been asked to end.
    full: Option<Sender<Vec<u8>>>,
    /// Empty buffers, or the error that ended the thread, after which nothing follows.
    empty: Receiver<io::Result<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl WriteBehind {
    /// Starts a thread that first calls `at_start` and then writes to `file`. Its buffers have a
    /// capacity of `len` bytes.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(mut file: File, len: usize, at_start: fn()) -> io::Result<WriteBehind> {
        let (full, buffers) = channel::<Vec<u8>>();
        let (give_back, empty) = channel();
        for _ in 1..BUFFERS {
            // The receiver still exists, so sending succeeds.
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
                    // While the caller is being dropped, the receiver is gone.
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

    /// Hands over the bytes in `buffer` and replaces it with an empty one. Waits while the thread
    /// has all other buffers.
    ///
    /// # Errors
    /// System errors, including those for bytes handed over earlier.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let empty = self.empty.recv().unwrap_or_else(|_| Err(gone()))?;
        let full = mem::replace(buffer, empty);
        match self.full.as_ref().map(|thread| thread.send(full)) {
            Some(Ok(())) => Ok(()),
            // The thread has failed in the meantime.
            _ => self.finish().and(Err(gone())),
        }
    }

    /// Waits until all bytes are written.
    ///
    /// # Errors
    /// System errors, each reported once.
    pub fn finish(&mut self) -> io::Result<()> {
        self.full = None;
        let written = self.empty.iter().try_for_each(|result| result.map(drop));
        let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
        written.and(ended.map_err(|_| gone()))
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // Dropping cannot report errors; `finish` does.
        let _ = self.finish();
    }
}

#[cold]
fn gone() -> io::Error {
    io::Error::other("the writer thread ended unexpectedly")
}
