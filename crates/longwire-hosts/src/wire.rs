//! The formats of datagrams and of the records in them.
//!
//! ```text
//! datagram    kind 1 │ session 3 │ number 8 │ records, encrypted │ tag 16
//! handshake   kind 1 │ Noise message with an introduction 51
//! answer      kind 1 │ name 4 │ Noise message with an introduction 51
//! records     batch 9 │ frame 17 + bytes │ frame … │ piece 9 + bytes
//!             ping 38 │ pong 25 │ tail 5 │ missing 2 + 4 each
//! ```
//!
//! Numbers are little-endian. Times are those of the sender's CLOCK_MONOTONIC, in
//! nanoseconds.

use longwire_engine::Nanos;

/// Bytes before the records of a datagram.
pub const HEADER_LEN: usize = 12;

/// Bytes of the authentication that follows them.
pub const TAG_LEN: usize = 16;

/// Bytes of a batch record, of a frame's head, of a piece's head.
pub const BATCH_LEN: usize = 9;
pub const FRAME_HEAD_LEN: usize = 1 + FrameHead::LEN + 2;
pub const PIECE_HEAD_LEN: usize = 9;

/// Kinds of datagrams.
pub const KIND_INITIATE: u8 = 1;
pub const KIND_RESPOND: u8 = 2;
pub const KIND_DATA: u8 = 3;

/// Kinds of records.
pub const RECORD_BATCH: u8 = 1;
pub const RECORD_FRAME: u8 = 2;
pub const RECORD_PIECE: u8 = 3;
pub const RECORD_PING: u8 = 4;
pub const RECORD_PONG: u8 = 5;
pub const RECORD_TAIL: u8 = 6;
pub const RECORD_MISSING: u8 = 7;
/// A batch that is sent again.
pub const RECORD_AGAIN: u8 = 8;

/// The version of these formats.
pub const VERSION: u8 = 4;

/// Where a frame goes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The output port.
    pub port: u16,
    /// The line of the release queue: the last link.
    pub line: u32,
    /// When it must be handed to the port.
    pub release: Nanos,
}

/// A part of a frame that is longer than a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceHead {
    pub frame: u32,
    pub index: u8,
    pub count: u8,
}

/// A host's introduction at the start of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub index: u16,
    pub digest: [u8; 32],
    /// Another one for each start of the host.
    pub instance: u64,
    /// When the host wrote this, on its monotonic clock: later ones of an instance are
    /// greater.
    pub begun: Nanos,
}

/// A question for the time, with the sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    pub sent: Nanos,
    pub wall: Nanos,
    /// The sender knows the offset of the receiver's clock.
    pub is_ready: bool,
    /// The epoch of the run on both clocks, once it is known.
    pub epoch: Option<(Nanos, Nanos)>,
    /// The low half of the frames that were sent before the session began or before the last
    /// ping: those that have not come are missing.
    pub frames_before: u32,
}

/// Writes records.
pub trait Write {
    fn u8(&mut self, value: u8);
    fn u16(&mut self, value: u16);
    fn u32(&mut self, value: u32);
    fn time(&mut self, value: Nanos);
}

impl Write for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn time(&mut self, value: Nanos) {
        self.extend_from_slice(&value.as_nanos().to_le_bytes());
    }
}

/// Reads records; each method returns `None` at the end of the bytes.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.bytes(LEN)?.first_chunk().copied()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn time(&mut self) -> Option<Nanos> {
        self.u64().map(Nanos::from_nanos)
    }
}

impl FrameHead {
    /// Bytes of port, line and release.
    pub const LEN: usize = 14;

    /// Writes port, line and release; the length follows in a frame record only.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u16(self.port);
        out.u32(self.line);
        out.time(self.release);
    }

    pub fn read(reader: &mut Reader<'_>) -> Option<FrameHead> {
        Some(FrameHead {
            port: reader.u16()?,
            line: reader.u32()?,
            release: reader.time()?,
        })
    }
}

impl PieceHead {
    pub fn read(reader: &mut Reader<'_>) -> Option<PieceHead> {
        Some(PieceHead {
            frame: reader.u32()?,
            index: reader.u8()?,
            count: reader.u8()?,
        })
    }
}

impl Introduction {
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.u16(self.index);
        out.extend_from_slice(&self.digest);
        out.extend_from_slice(&self.instance.to_le_bytes());
        out.time(self.begun);
        out
    }

    pub fn read(bytes: &[u8]) -> Option<Introduction> {
        let mut reader = Reader(bytes);
        if reader.u8()? != VERSION {
            return None;
        }
        Some(Introduction {
            index: reader.u16()?,
            digest: reader.array()?,
            instance: reader.u64()?,
            begun: reader.time()?,
        })
    }
}

impl Ping {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u8(RECORD_PING);
        out.time(self.sent);
        out.time(self.wall);
        out.u8(u8::from(self.is_ready) | u8::from(self.epoch.is_some()) << 1);
        let (monotonic, wall) = self.epoch.unwrap_or_default();
        out.time(monotonic);
        out.time(wall);
        out.u32(self.frames_before);
    }

    /// Reads what follows the kind.
    pub fn read(reader: &mut Reader<'_>) -> Option<Ping> {
        let (sent, wall) = (reader.time()?, reader.time()?);
        let flags = reader.u8()?;
        let epoch = (reader.time()?, reader.time()?);
        Some(Ping {
            sent,
            wall,
            is_ready: flags & 1 != 0,
            epoch: Some(epoch).filter(|_| flags & 2 != 0),
            frames_before: reader.u32()?,
        })
    }
}
