//! Datagram and record formats.
//!
//! ```text
//! datagram    kind 1 │ session 3 │ number 8 │ records, encrypted │ tag 16
//! handshake   kind 1 │ Noise message with an introduction 51
//! answer      kind 1 │ name 4 │ Noise message with an introduction 51
//! records     batch 9 │ frame 17 + bytes │ frame … │ fragment 9 + bytes
//!             ping 38 │ pong 25 │ tail 5 │ missing 2 + 4 each
//! ```
//!
//! Numbers are little-endian. Times are on the sender's CLOCK_MONOTONIC, in nanoseconds.

use longwire_engine::Nanos;

use crate::clock::Stamp;

/// Length of the datagram header.
pub const HEADER_LEN: usize = 12;

/// Length of the authentication tag.
pub const TAG_LEN: usize = 16;

/// Lengths of a batch record, a frame header and a fragment header.
pub const BATCH_LEN: usize = 9;
pub const FRAME_HEAD_LEN: usize = 1 + FrameHead::LEN + 2;
pub const FRAGMENT_HEAD_LEN: usize = 9;

/// Datagram types.
pub const KIND_INITIATE: u8 = 1;
pub const KIND_RESPOND: u8 = 2;
pub const KIND_DATA: u8 = 3;

/// Record types.
pub const RECORD_BATCH: u8 = 1;
pub const RECORD_FRAME: u8 = 2;
pub const RECORD_FRAGMENT: u8 = 3;
pub const RECORD_PING: u8 = 4;
pub const RECORD_PONG: u8 = 5;
pub const RECORD_TAIL: u8 = 6;
pub const RECORD_MISSING: u8 = 7;
/// Record type of a resent batch.
pub const RECORD_RESENT: u8 = 8;

/// Protocol version in introductions. Hosts with another version cannot connect.
pub const VERSION: u8 = 4;

/// A frame's destination and release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub port: u16,
    /// The line of the release queue: 0 without a link, else the last link's number plus 1.
    pub line: u32,
    /// Release on the sender's clock.
    pub release: Nanos,
}

/// A fragment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHead {
    pub frame: u32,
    pub index: u8,
    pub count: u8,
}

/// A host's introduction in handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub index: u16,
    pub digest: [u8; 32],
    /// A number unique to each start of the host.
    pub instance: u64,
    /// Send time on the host's monotonic clock. It increases within an instance.
    pub begun: Nanos,
}

/// A time request, with the sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    pub sent: Stamp,
    /// Whether the sender has estimated the receiver's clock offset.
    pub is_ready: bool,
    /// The run's epoch on both clocks, if known.
    pub epoch: Option<Stamp>,
    /// Low half of the number of frames sent before the previous ping or, in a session's first
    /// ping, before the session. Of these, the receiver counts missing frames as lost.
    pub frames_before: u32,
}

pub trait Write {
    fn u8(&mut self, value: u8);
    fn u16(&mut self, value: u16);
    fn u32(&mut self, value: u32);
    fn time(&mut self, value: Nanos);
    fn stamp(&mut self, value: Stamp);
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

    fn stamp(&mut self, value: Stamp) {
        self.time(value.monotonic);
        self.time(value.wall);
    }
}

/// Parses records. Each method returns `None` at the end of the input.
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

    pub fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            monotonic: self.time()?,
            wall: self.time()?,
        })
    }
}

impl FrameHead {
    /// Length in bytes of port, queue and release.
    pub const LEN: usize = 14;

    /// Writes port, queue and release. A frame record adds the length.
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

impl FragmentHead {
    pub fn read(reader: &mut Reader<'_>) -> Option<FragmentHead> {
        Some(FragmentHead {
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
        out.stamp(self.sent);
        out.u8(u8::from(self.is_ready) | u8::from(self.epoch.is_some()) << 1);
        out.stamp(self.epoch.unwrap_or_default());
        out.u32(self.frames_before);
    }

    /// Parses the part of a ping after its type.
    pub fn read(reader: &mut Reader<'_>) -> Option<Ping> {
        let (sent, flags, epoch) = (reader.stamp()?, reader.u8()?, reader.stamp()?);
        Some(Ping {
            sent,
            is_ready: flags & 1 != 0,
            epoch: Some(epoch).filter(|_| flags & 2 != 0),
            frames_before: reader.u32()?,
        })
    }
}
