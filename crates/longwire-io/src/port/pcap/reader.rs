//! Reading capture files of either kind, frame by frame.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use longwire_engine::Nanos;

use super::CAPTURED_MAX;
use super::classic::Classic;
use super::ng::{self, Ng};
use super::source::{Filled, Source, Stop};
use crate::port::PortError;

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since 1970 (UTC).
    pub stamp: Nanos,
    /// What was captured of it, from the destination MAC address on; without
    /// the frame check sequence, if the file says that there is one.
    pub bytes: &'a [u8],
    /// How long it was on the wire, in bytes.
    pub wire_len: u32,
}

/// Where a frame lies in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    stamp: u64,
    at: usize,
    len: u32,
    wire_len: u32,
}

impl Place {
    /// A frame of `captured` bytes at `at`, `original` on the wire, both with
    /// `fcs_len` bytes of check sequence at the original's end. Some tools
    /// write an original length of zero: then it is the captured one.
    #[inline]
    pub(super) fn new(stamp: u64, at: usize, captured: u32, original: u32, fcs_len: u32) -> Place {
        let wire_len = original.max(captured).saturating_sub(fcs_len);
        Place {
            stamp,
            at,
            len: captured.min(wire_len),
            wire_len,
        }
    }
}

enum Format {
    Classic(Classic),
    Ng(Ng),
}

/// Reads a capture file from its beginning to its end, in memory that does
/// not grow with the file.
pub struct CaptureReader {
    name: String,
    source: Source,
    format: Format,
    size: Option<u64>,
    /// The input itself, if reading from it can block.
    pipe: Option<OwnedFd>,
    current: Option<Place>,
    /// The end, or an error, was reported.
    over: bool,
}

/// What [`CaptureReader::advance`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A frame; [`CaptureReader::current`] shows it.
    Frame,
    /// The end of the file.
    End,
    /// Nothing yet (only after [`CaptureReader::never_block`]).
    Later,
}

impl CaptureReader {
    /// Opens a classic pcap or pcapng file, told apart by their first bytes;
    /// `-` is the standard input.
    ///
    /// # Errors
    /// When the file cannot be read or does not begin as a capture of
    /// Ethernet frames.
    pub fn open(path: &str) -> Result<CaptureReader, PortError> {
        let file = open_input(path).map_err(|error| failed(path, "opening", error))?;
        let (size, pipe) = match file.metadata() {
            Ok(metadata) if metadata.is_file() => (Some(metadata.len()), None),
            _ => (None, file.try_clone().ok().map(OwnedFd::from)),
        };
        let mut reader = Self::new(path, file)?;
        reader.size = size;
        reader.pipe = pipe;
        Ok(reader)
    }

    /// Reads a capture from any input; `name` is what errors call it.
    ///
    /// # Errors
    /// As for [`CaptureReader::open`].
    pub fn new(name: &str, input: impl Read + Send + 'static) -> Result<CaptureReader, PortError> {
        let mut source = Source::new(Box::new(input));
        let format = recognise(&mut source).map_err(|stop| stop_error(name, stop))?;
        Ok(CaptureReader {
            name: name.into(),
            source,
            format,
            size: None,
            pipe: None,
            current: None,
            over: false,
        })
    }

    /// The next frame; `None` at the end of the file, and after an error.
    ///
    /// # Errors
    /// [`PortError::Malformed`] with the place and the reason;
    /// [`PortError::Unsupported`] for frames that are not Ethernet.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "the record borrows the reader"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, PortError> {
        loop {
            match self.advance()? {
                Step::Frame => return Ok(self.current()),
                Step::End => return Ok(None),
                // Not told to never block, so a blocking read comes next.
                Step::Later => {}
            }
        }
    }

    /// How many bytes of the file have been read.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// How many bytes the file has, where that is known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The longest frame that the file may hold.
    pub fn frame_max(&self) -> usize {
        match &self.format {
            Format::Classic(classic) => classic.captured_max() as usize,
            // Later interfaces may allow more than the first.
            Format::Ng(_) => CAPTURED_MAX as usize,
        }
    }

    /// What errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From here on, [`Step::Later`] stands for a read that would block.
    pub(super) fn never_block(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.source.never_block(pipe);
        }
    }

    /// Becomes readable when more comes, for inputs that can block.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.source.readable()
    }

    /// Moves on to the next frame.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<Step, PortError> {
        self.current = None;
        if self.over {
            return Ok(Step::End);
        }
        let place = match &mut self.format {
            Format::Classic(classic) => classic.advance(&mut self.source),
            Format::Ng(ng) => ng.advance(&mut self.source),
        };
        match place {
            Ok(Some(place)) => {
                self.current = Some(place);
                Ok(Step::Frame)
            }
            Ok(None) => {
                self.over = true;
                Ok(Step::End)
            }
            Err(Stop::Later) => Ok(Step::Later),
            Err(stop) => {
                self.over = true;
                Err(stop_error(&self.name, stop))
            }
        }
    }

    /// The frame last moved to.
    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.current.map(|place| Record {
            stamp: Nanos::from_nanos(place.stamp),
            bytes: self.source.at(place.at, place.len as usize),
            wire_len: place.wire_len,
        })
    }
}

fn open_input(path: &str) -> io::Result<File> {
    if path == "-" {
        return Ok(io::stdin().as_fd().try_clone_to_owned()?.into());
    }
    File::open(path)
}

fn recognise(source: &mut Source) -> Result<Format, Stop> {
    let malformed = |reason: String| Err(Stop::Malformed { offset: 0, reason });
    if let Filled::Ended(held) = source.need(4)? {
        return malformed(match held {
            0 => "the file is empty".into(),
            _ => format!("{held} bytes are too few for a capture"),
        });
    }
    let head = source.held();
    let magic = [head[0], head[1], head[2], head[3]];
    if magic == ng::MAGIC {
        return Ng::open(source).map(Format::Ng);
    }
    if let Some((order, nanos)) = Classic::recognise(magic) {
        return Classic::open(source, order, nanos).map(Format::Classic);
    }
    let [a, b, c, d] = magic;
    malformed(match magic {
        [0x1f, 0x8b, ..] => "compressed with gzip; unpack it first, or pipe it: zcat FILE".into(),
        [0x28, 0xb5, 0x2f, 0xfd] => "compressed with zstd; unpack it first: zstd -d FILE".into(),
        _ => format!("begins with {a:02x} {b:02x} {c:02x} {d:02x}, neither pcap nor pcapng"),
    })
}

fn stop_error(name: &str, stop: Stop) -> PortError {
    match stop {
        Stop::Malformed { offset, reason } => PortError::Malformed {
            path: name.into(),
            offset,
            reason,
        },
        Stop::Unsupported(reason) => PortError::Unsupported {
            port: name.into(),
            reason,
        },
        Stop::Io(error) => failed(name, "reading", error),
        Stop::Later => failed(name, "reading", io::ErrorKind::WouldBlock.into()),
    }
}

/// The error of a system call on a file.
pub(super) fn failed(path: &str, action: &'static str, source: io::Error) -> PortError {
    let port = path.into();
    match source.kind() {
        io::ErrorKind::PermissionDenied => PortError::Denied {
            port,
            action,
            source,
        },
        _ => PortError::Failed {
            port,
            action,
            source,
        },
    }
}
