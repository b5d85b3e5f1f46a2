//! Input that may be compressed: gzip (RFC 1952), zstd (RFC 8878) or lz4 frames, possibly
//! concatenated, for example by `cat` or a parallel compressor.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4;
use nix::sys::eventfd::EventFd;

use super::raw::{Raw, bell};
use super::source::Stop;
use super::zstd::Zstd;

/// Compression of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// gzip, with one or more members.
    Gzip,
    /// zstd, with one or more frames.
    Zstd,
    /// The lz4 frame format, with one or more frames.
    Lz4,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Lz4 => "lz4",
        })
    }
}

/// Bytes requested from the gzip decoder per call; few, because a call that fails loses the bytes
/// that it has decompressed.
const GZIP_STEP: usize = 16 * 1024;

/// Bytes of a capture, decompressed if necessary.
pub(super) struct Input {
    stage: Stage,
    /// The compression, which is known after the first byte.
    pub(super) packing: Option<Packing>,
    /// The event that ends a read waiting for a pipe.
    pub(super) stop: Option<Arc<EventFd>>,
}

enum Stage {
    /// Before the first byte, or between two members.
    Between(Raw),
    Plain(Raw),
    Gzip(Box<GzDecoder<Raw>>),
    Zstd(Box<Zstd>),
    Lz4(Box<Lz4<Raw>>),
    /// Placeholder while one stage is replaced by the next.
    Passing,
}

impl Input {
    /// Reads an open file.
    pub(super) fn of_file(file: File) -> io::Result<Input> {
        let stop = bell()?;
        let raw = Raw::of_file(file, &stop)?;
        let stop = (!raw.is_repeatable()).then_some(stop);
        Ok(Input {
            stage: Stage::Between(raw),
            packing: None,
            stop,
        })
    }

    /// Reads an input that cannot be rewound.
    pub(super) fn of(input: Box<dyn Read + Send>) -> Input {
        Input {
            stage: Stage::Between(Raw::of(input)),
            packing: None,
            stop: None,
        }
    }

    /// Whether bytes may arrive slowly, and so must be passed on without waiting for more.
    pub(super) fn is_slow(&self) -> bool {
        !self.raw().is_some_and(Raw::is_repeatable)
    }

    /// Returns the number of stored bytes consumed.
    pub(super) fn taken(&self) -> u64 {
        self.raw().map_or(0, |raw| raw.taken)
    }

    pub(super) fn rewind(&mut self) -> io::Result<()> {
        let mut raw = self.take_raw();
        let result = raw.rewind();
        self.stage = Stage::Between(raw);
        self.packing = None;
        result
    }

    /// Reads some bytes; 0 at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        loop {
            if matches!(self.stage, Stage::Between(_)) && !self.begin()? {
                return Ok(0);
            }
            let result = match &mut self.stage {
                Stage::Between(_) => continue,
                Stage::Passing => return Ok(0),
                Stage::Plain(raw) => {
                    let result = raw.read(buffer);
                    return result.map_err(|error| Stop::Io(raw.fault.take().unwrap_or(error)));
                }
                Stage::Gzip(decoder) => {
                    let len = buffer.len().min(GZIP_STEP);
                    let result = decoder.read(&mut buffer[..len]);
                    result.map_err(|error| error.to_string())
                }
                Stage::Zstd(decoder) => decoder.read(buffer),
                Stage::Lz4(decoder) => match decoder.read(buffer) {
                    // The decoder treats a truncation between two blocks as the end.
                    Ok(0) if decoder.get_ref().ran_out => Err(String::new()),
                    result => result.map_err(|error| error.to_string()),
                },
            };
            match result {
                Ok(0) if !buffer.is_empty() => self.stage = Stage::Between(self.take_raw()),
                Ok(count) => return Ok(count),
                Err(reason) => return Err(self.damaged(&reason)),
            }
        }
    }

    /// Selects the decoder from the next bytes. Returns `false` at the end of the file.
    fn begin(&mut self) -> Result<bool, Stop> {
        let mut raw = self.take_raw();
        let head = raw.peek(4).map_err(Stop::Io)?.to_vec();
        let begins = match (&head[..], self.packing) {
            ([], Some(_)) => {
                self.stage = Stage::Between(raw);
                return Ok(false);
            }
            ([0x1f, 0x8b, ..], _) => Packing::Gzip,
            ([0x28, 0xb5, 0x2f, 0xfd], _) => Packing::Zstd,
            ([0x04, 0x22, 0x4d, 0x18], _) => Packing::Lz4,
            // A skippable frame, common to zstd and lz4.
            ([0x50..=0x5f, 0x2a, 0x4d, 0x18], packing) => {
                self.packing = packing.or(Some(Packing::Zstd));
                return self.pass_over_frame(raw).map(|()| true);
            }
            (_, None) => {
                self.stage = Stage::Plain(raw);
                return Ok(true);
            }
            (other, Some(packing)) => {
                let reason = format!("trailing data after the {packing} stream: {other:02x?}");
                let offset = raw.taken;
                return Err(Stop::Packed { offset, reason });
            }
        };
        self.packing = Some(begins);
        self.stage = match begins {
            Packing::Gzip => Stage::Gzip(Box::new(GzDecoder::new(raw))),
            Packing::Zstd => Stage::Zstd(Box::new(Zstd::new(raw))),
            Packing::Lz4 => Stage::Lz4(Box::new(Lz4::new(raw))),
        };
        Ok(true)
    }

    fn pass_over_frame(&mut self, mut raw: Raw) -> Result<(), Stop> {
        let passed = raw.peek(8).map(|head| match head {
            [_, _, _, _, a, b, c, d] => 8 + u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
            _ => u64::MAX,
        });
        let whole = passed.and_then(|len| raw.pass_over(len));
        self.stage = Stage::Between(raw);
        match whole {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.damaged("")),
            Err(error) => Err(Stop::Io(error)),
        }
    }

    /// Returns the cause of a decoder's error.
    fn damaged(&mut self, reason: &str) -> Stop {
        let packing = self.packing.map_or(String::new(), |p| p.to_string());
        let mut raw = self.take_raw();
        if let Some(error) = raw.fault.take() {
            return Stop::Io(error);
        }
        let offset = raw.taken;
        let reason = if raw.ran_out {
            format!("truncated {packing} stream")
        } else {
            format!("corrupt {packing} stream: {reason}")
        };
        Stop::Packed { offset, reason }
    }

    fn raw(&self) -> Option<&Raw> {
        match &self.stage {
            Stage::Between(raw) | Stage::Plain(raw) => Some(raw),
            Stage::Gzip(decoder) => Some(decoder.get_ref()),
            Stage::Zstd(decoder) => Some(&decoder.raw),
            Stage::Lz4(decoder) => Some(decoder.get_ref()),
            Stage::Passing => None,
        }
    }

    fn take_raw(&mut self) -> Raw {
        match std::mem::replace(&mut self.stage, Stage::Passing) {
            Stage::Between(raw) | Stage::Plain(raw) => raw,
            Stage::Gzip(decoder) => decoder.into_inner(),
            Stage::Zstd(decoder) => decoder.raw,
            Stage::Lz4(decoder) => decoder.into_inner(),
            // Only after an error, when no more data is read.
            Stage::Passing => Raw::of(Box::new(io::empty())),
        }
    }
}
