//! Reading of capture files in either format, frame by frame.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use longwire_engine::Nanos;

use super::ahead::{Batches, Depth};
use super::classic::Classic;
use super::counts::{LeftOut, RecordCounts};
use super::link_type::{Framing, Place};
use super::ng::{self, Ng};
use super::payload::ETHERNET_LEN;
use super::source::{FillResult, Source, Stop};
use super::unpack::{Input, Packing};
use super::{CAPTURED_MAX, CaptureError};

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Capture time, as Unix time (UTC).
    pub stamp: Nanos,
    /// The captured bytes, starting with the destination MAC address, without the FCS if the file
    /// declares one. Frames captured without an Ethernet header are given one.
    pub bytes: &'a [u8],
    /// Wire length in bytes.
    pub wire_len: u32,
    /// Index of the capturing interface in pcapng; 0 in classic pcap.
    pub interface: u32,
}

/// Reads a capture file sequentially, in constant memory.
pub struct CaptureReader {
    name: String,
    source: Source,
    /// `None` until the header is read, also after a rewind.
    format: Option<Format>,
    packing: Option<Packing>,
    size: Option<u64>,
    /// The only pcapng interface to read, if selected.
    interface: Option<String>,
    current: Option<Place>,
    counts: RecordCounts,
    /// Whether the end or an error has been reported.
    over: bool,
}

/// Result of [`CaptureReader::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A frame, returned by [`CaptureReader::current`].
    Frame,
    /// The end of the file.
    End,
    /// No frame available yet (only after [`CaptureReader::never_wait`]).
    Later,
}

impl CaptureReader {
    /// Opens a classic pcap or pcapng file, detected by its first bytes, uncompressed or compressed
    /// with gzip, zstd or lz4. `-` is standard input.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a capture of Ethernet frames or of frames that can be
    /// converted to Ethernet.
    pub fn open(path: &str) -> Result<CaptureReader, CaptureError> {
        let opening = |error| CaptureError::file(path, "opening", error);
        let file = open_input(path).map_err(opening)?;
        let metadata = file.metadata().ok().filter(Metadata::is_file);
        let mut reader = Self::of(path, Input::of_file(file).map_err(opening)?)?;
        reader.size = metadata.map(|metadata| metadata.len());
        Ok(reader)
    }

    /// Reads a capture from any input. Error messages contain `name`.
    ///
    /// # Errors
    /// The errors of [`CaptureReader::open`].
    pub fn new(
        name: &str,
        input: impl Read + Send + 'static,
    ) -> Result<CaptureReader, CaptureError> {
        Self::of(name, Input::of(Box::new(input)))
    }

    fn of(name: &str, input: Input) -> Result<CaptureReader, CaptureError> {
        let mut reader = CaptureReader {
            name: name.into(),
            source: Source::new(input),
            format: None,
            packing: None,
            size: None,
            interface: None,
            current: None,
            counts: RecordCounts::default(),
            over: false,
        };
        let format = Format::recognise(&mut reader.source, None);
        reader.packing = reader.source.packing();
        reader.format = Some(format.map_err(|stop| reader.error(stop))?);
        Ok(reader)
    }

    /// Returns the next frame, or `None` at the end of the file and after an error.
    ///
    /// # Errors
    /// [`CaptureError::Malformed`] with offset and reason, where the offset is in the decompressed
    /// file or, if the compression is damaged, in the stored file. [`CaptureError::Unsupported`] at
    /// the end of a pcapng file that lacks the selected interface, or has no interface whose frames
    /// can be converted to Ethernet.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "the record borrows the reader"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        // Returned directly, because storing the place and loading it would stall.
        if let Some(Format::Classic(classic)) = &self.format
            && !self.over
            && let Some(place) = classic.quick(&mut self.source)
        {
            return Ok(Some(self.record(place)));
        }
        self.next_slowly()
    }

    #[inline(never)]
    fn next_slowly(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        loop {
            match self.advance()? {
                Step::Frame => return Ok(self.current()),
                Step::End => return Ok(None),
                // `never_wait` was not called, so the next read blocks.
                Step::Later => {}
            }
        }
    }

    /// Returns the offset in the decompressed file.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// Returns the offset in the stored file: approximate if the file is compressed, equal to
    /// [`CaptureReader::offset`] otherwise.
    pub fn stored_offset(&self) -> u64 {
        match self.packing {
            None => self.source.offset(),
            Some(_) => self.source.stored_offset(),
        }
    }

    /// Returns the size of the stored file in bytes, if known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns the file's compression, or `None` if uncompressed.
    pub fn packing(&self) -> Option<Packing> {
        self.packing
    }

    /// Returns the maximum frame length in bytes, for any file.
    pub fn frame_max(&self) -> usize {
        CAPTURED_MAX as usize + ETHERNET_LEN
    }

    /// Selects the only interface to read, by name or by number in its section, from 0. Frames of
    /// other interfaces are skipped and counted. Call it before the first frame.
    ///
    /// # Errors
    /// If the file is classic pcap, which has no interfaces.
    pub fn choose_interface(&mut self, interface: &str) -> Result<(), CaptureError> {
        let Some(Format::Ng(ng)) = &mut self.format else {
            let reason = format!("no interface '{interface}': a classic pcap has no interfaces");
            return Err(CaptureError::unsupported(&self.name, reason));
        };
        ng.choose(interface);
        self.interface = Some(interface.to_owned());
        Ok(())
    }

    /// Returns the file's name for error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the counts of converted and skipped records.
    pub fn counts(&self) -> &RecordCounts {
        &self.counts
    }

    /// Starts a thread that reads ahead and decompresses. The thread first calls `at_start`, for
    /// example to drop privileges that reading an open file does not need. With `repeat`, it
    /// continues with the beginning after the end, for [`CaptureReader::rewind`]. A no-op if a
    /// thread already reads ahead.
    ///
    /// # Errors
    /// If no thread can be started, or `repeat` is set for an input that can only be read once.
    pub fn read_ahead(&mut self, repeat: bool, at_start: fn()) -> Result<(), CaptureError> {
        if repeat && !self.is_repeatable() {
            let reason = "a pipe can be read only once; save it to a file";
            return Err(CaptureError::unsupported(&self.name, reason));
        }
        self.start_thread(repeat, Depth::DEEP, at_start)
    }

    /// Like [`CaptureReader::read_ahead`] without `repeat`, for callers that may wait.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn read_in_thread(&mut self, batches: Batches, at_start: fn()) -> Result<(), CaptureError> {
        self.start_thread(false, Depth::of(batches), at_start)
    }

    fn start_thread(
        &mut self,
        repeat: bool,
        depth: Depth,
        at_start: fn(),
    ) -> Result<(), CaptureError> {
        let result = self.source.read_ahead(repeat, depth, at_start);
        result.map_err(|error| CaptureError::file(&self.name, "reading ahead", error))
    }

    /// Makes [`CaptureReader::advance`] return [`Step::Later`] instead of waiting, if a thread
    /// reads ahead.
    pub fn never_wait(&mut self) {
        self.source.never_wait();
    }

    /// Returns a descriptor that becomes readable when more data arrives after
    /// [`Step::Later`].
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.source.readable()
    }

    /// Signals the descriptor of [`CaptureReader::readable`] if a thread reads ahead, for callers
    /// that pause without having received [`Step::Later`].
    pub fn ring(&self) {
        self.source.ring();
    }

    /// Whether the file can be read again.
    pub fn is_repeatable(&self) -> bool {
        self.size.is_some()
    }

    /// Restarts the file from its beginning. A thread that does not repeat ends, and can be started
    /// again.
    ///
    /// # Errors
    /// If the input can only be read once.
    pub fn rewind(&mut self) -> Result<(), CaptureError> {
        let result = self.source.rewind();
        result.map_err(|error| CaptureError::file(&self.name, "reading again", error))?;
        self.format = None;
        self.over = false;
        Ok(())
    }

    /// Returns the name of an interface in the current section, or `None` if it has no name.
    pub fn interface_name(&self, interface: u32) -> Option<&str> {
        match self.format.as_ref()? {
            Format::Classic(_) => None,
            Format::Ng(ng) => ng.interface_name(interface),
        }
    }

    /// Returns the bytes and wire lengths of the next buffered frames, without advancing. Only for
    /// classic captures; never returns a file's last frames.
    pub fn upcoming(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let mut held = self.source.held();
        std::iter::from_fn(move || {
            let Some(Format::Classic(classic)) = &self.format else {
                return None;
            };
            let (frame, wire_len, rest) = classic.peek(held)?;
            held = rest;
            Some((frame, wire_len))
        })
    }

    /// Advances to the next frame.
    ///
    /// # Errors
    /// The errors of [`CaptureReader::next`]. After an error, the file counts as ended.
    #[inline]
    pub fn advance(&mut self) -> Result<Step, CaptureError> {
        // Read within each branch, because returning the place from both branches would copy it
        // once more.
        let place = match &mut self.format {
            _ if self.over => None,
            Some(Format::Classic(classic)) => {
                if let Some(place) = classic.quick(&mut self.source) {
                    self.current = Some(place);
                    return Ok(Step::Frame);
                }
                None
            }
            Some(Format::Ng(ng)) => ng.quick(&mut self.source),
            None => None,
        };
        if place.is_some() {
            self.current = place;
            return Ok(Step::Frame);
        }
        self.advance_slowly()
    }

    /// Advances in cases not covered by the fast path.
    #[inline(never)]
    fn advance_slowly(&mut self) -> Result<Step, CaptureError> {
        self.current = None;
        if self.over {
            return Ok(Step::End);
        }
        loop {
            let found = match &mut self.format {
                Some(Format::Classic(classic)) => {
                    classic.advance(&mut self.source).map(|place| place.map(Ok))
                }
                Some(Format::Ng(ng)) => ng.advance(&mut self.source),
                None => match Format::recognise(&mut self.source, self.interface.as_deref()) {
                    Ok(format) => {
                        self.format = Some(format);
                        continue;
                    }
                    Err(stop) => Err(stop),
                },
            };
            match found {
                Ok(Some(found)) => match found.and_then(|place| self.convert(place)) {
                    Ok(place) => {
                        self.current = Some(place);
                        return Ok(Step::Frame);
                    }
                    Err(reason) => self.counts.leave_out(reason),
                },
                Ok(None) => {
                    self.over = true;
                    return Ok(Step::End);
                }
                Err(Stop::Later) => return Ok(Step::Later),
                Err(stop) => {
                    self.over = true;
                    return Err(self.error(stop));
                }
            }
        }
    }

    /// Returns the frame of the last [`CaptureReader::advance`].
    #[inline]
    pub fn current(&self) -> Option<Record<'_>> {
        self.current.map(|place| self.record(place))
    }

    #[inline(always)]
    fn record(&self, place: Place) -> Record<'_> {
        Record {
            stamp: Nanos::from_nanos(place.stamp),
            bytes: self.source.at(place.at, place.len as usize),
            wire_len: place.wire_len,
            interface: place.interface,
        }
    }

    /// Replaces the frame's own header with an Ethernet header, overwriting consumed bytes before
    /// the payload.
    fn convert(&mut self, mut place: Place) -> Result<Place, LeftOut> {
        if place.framing == Framing::Ethernet {
            return Ok(place);
        }
        let data = self.source.at(place.at, place.len as usize);
        let payload = place.framing.payload(data, place.wire_len)?;
        place.framing.count_in(&mut self.counts);
        place.at = place.at + payload.at - ETHERNET_LEN;
        self.source.overwrite(place.at, &payload.header);
        let change = |len: u32| len - payload.at as u32 + ETHERNET_LEN as u32;
        place.wire_len = change(place.wire_len - payload.trailer_len);
        place.len = change(place.len).min(place.wire_len);
        Ok(place)
    }

    #[cold]
    fn error(&self, stop: Stop) -> CaptureError {
        let mut file = self.name.clone();
        if let (Some(packing), Stop::Malformed { .. }) = (self.packing, &stop) {
            file.push_str(&format!(" unpacked ({packing})"));
        }
        match stop {
            Stop::Malformed { offset, reason } | Stop::Packed { offset, reason } => {
                CaptureError::Malformed {
                    file,
                    offset,
                    reason,
                }
            }
            Stop::Unsupported(reason) => CaptureError::Unsupported { file, reason },
            Stop::Io(error) => CaptureError::file(&file, "reading", error),
            Stop::Later => CaptureError::file(&file, "reading", io::ErrorKind::WouldBlock.into()),
        }
    }
}

fn open_input(path: &str) -> io::Result<File> {
    if path == "-" {
        return Ok(io::stdin().as_fd().try_clone_to_owned()?.into());
    }
    // The capture may be a FIFO; opening it then blocks until there is a writer.
    File::open(path)
}

/// A file's format, with its reader.
enum Format {
    Classic(Classic),
    Ng(Ng),
}

impl Format {
    /// Determines the format from the first four bytes and reads the file header. With `interface`,
    /// only that interface of a pcapng file is read.
    fn recognise(source: &mut Source, interface: Option<&str>) -> Result<Format, Stop> {
        let malformed = |reason: String| Err(Stop::malformed(0, reason));
        if let FillResult::Ended(held) = source.need(4)? {
            return malformed(match held {
                0 => "empty file".into(),
                _ => format!("{held} bytes are too short for a capture"),
            });
        }
        let head = source.held();
        let magic = [head[0], head[1], head[2], head[3]];
        if magic == ng::MAGIC {
            return Ng::open(source, interface).map(Format::Ng);
        }
        if let Some(magic) = Classic::recognise(magic) {
            return Classic::open(source, magic).map(Format::Classic);
        }
        let [a, b, c, d] = magic;
        malformed(match magic {
            [0x42, 0x5a, 0x68, ..] => "compressed with bzip2; pipe it: bzcat FILE | … -".into(),
            [0xfd, 0x37, 0x7a, 0x58] => "compressed with xz; pipe it: xzcat FILE | … -".into(),
            [0x02, 0x21, 0x4c, 0x18] => {
                "legacy lz4 format; convert it: lz4cat FILE | lz4 > NEW".into()
            }
            _ => format!("neither pcap nor pcapng: starts with {a:02x} {b:02x} {c:02x} {d:02x}"),
        })
    }
}
