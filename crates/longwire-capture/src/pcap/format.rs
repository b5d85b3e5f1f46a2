//! The two formats of capture files, and the places of their frames in the reader's buffer.

use super::classic::Classic;
use super::counts::LeftOut;
use super::link_type::Framing;
use super::ng::{self, Ng};
use super::source::{FillResult, Source, Stop};

/// Format of a file, with its reader.
pub(super) enum Format {
    Classic(Classic),
    Ng(Ng),
}

impl Format {
    /// Determines the format by the first four bytes, and reads the file's
    /// header. Of a pcapng file, `interface` alone is read, if it is given.
    pub(super) fn recognise(source: &mut Source, interface: Option<&str>) -> Result<Format, Stop> {
        let malformed = |reason: String| Err(Stop::Malformed { offset: 0, reason });
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

    /// Advances to the next frame.
    pub(super) fn advance(&mut self, source: &mut Source) -> Result<Option<Found>, Stop> {
        match self {
            Format::Classic(classic) => Ok(classic.advance(source)?.map(Found::Frame)),
            Format::Ng(ng) => ng.advance(source),
        }
    }
}

/// The content of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Frame(Place),
    LeftOut(LeftOut),
}

/// The place of a frame in the buffer, with its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) stamp: u64,
    pub(super) at: usize,
    pub(super) len: u32,
    pub(super) wire_len: u32,
    pub(super) framing: Framing,
    pub(super) interface: u32,
}

impl Place {
    /// Describes a frame of `captured` bytes at `at`, `original` on the wire,
    /// both with `fcs_len` bytes of check sequence at the original's end. Some
    /// tools write an original length of zero: then the captured length is used.
    #[inline]
    pub(super) fn new(stamp: u64, at: usize, captured: u32, original: u32, fcs_len: u32) -> Place {
        let wire_len = original.max(captured).saturating_sub(fcs_len);
        Place {
            stamp,
            at,
            len: captured.min(wire_len),
            wire_len,
            framing: Framing::Ethernet,
            interface: 0,
        }
    }

    /// Sets the interface on which the frame was captured.
    #[inline]
    pub(super) fn on(self, interface: u32) -> Place {
        Place { interface, ..self }
    }

    /// Sets the framing, for frames that do not begin with an Ethernet header.
    #[inline]
    pub(super) fn framed(self, framing: Framing) -> Place {
        Place { framing, ..self }
    }
}
