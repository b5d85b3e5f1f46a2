//! Joins wire frames that were cut from one train.

use super::headers::{Headers, PACKET_MAX, Transport};
use super::segments::{TCP_LAST_ONLY, put_len, write_network_header, write_unfinished_checksum};
use super::{Offload, Segments, checksum};

/// Maximum length of a joined train: its IP length has 16 bits.
const JOINED_MAX: usize = PACKET_MAX;

/// Position of one or more adjacent wire frames in the train that they were cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainPart {
    /// Train number, below 2^48 and unique among the trains in transit.
    pub train: u64,
    /// Index in the train of the part's first segment.
    pub index: u16,
    /// The train's segmentation.
    pub segments: Segments,
}

impl TrainPart {
    /// Packs train and index into one word.
    pub(crate) fn pack(self) -> u64 {
        self.train << 16 | u64::from(self.index)
    }

    pub(crate) fn unpack(word: u64, segments: Segments) -> TrainPart {
        TrainPart {
            train: word >> 16,
            index: word as u16,
            segments,
        }
    }

    /// Packs the part into two words, which [`TrainPart::from_words`] unpacks.
    pub fn to_words(self) -> [u64; 2] {
        let Segments {
            header_len,
            payload_len,
            ..
        } = self.segments;
        let lens = u64::from(header_len) << 16 | u64::from(payload_len);
        [self.pack(), u64::from(self.segments.code()) << 32 | lens]
    }

    /// Unpacks a part; `None` if the words are invalid.
    pub fn from_words([place, segments]: [u64; 2]) -> Option<TrainPart> {
        let lens = ((segments >> 16) as u16, segments as u16);
        let segments = Segments::of_code((segments >> 32) as u32, lens)?;
        Some(TrainPart::unpack(place, segments))
    }

    /// Returns the number of wire frames in a part of `len` bytes.
    fn frames(&self, len: usize) -> usize {
        self.segments.wire_frames(len).len()
    }
}

/// Joins adjacent parts of a train into a shorter train with valid headers. The buffer is reused.
#[derive(Debug, Default)]
pub struct Joiner {
    buffer: Vec<u8>,
    first: Option<TrainPart>,
    /// Index of the next segment.
    next: usize,
    parts: usize,
    /// The first part's offload.
    offload: Offload,
    /// The last part's TCP flags.
    flags: u8,
    headers: Option<Headers>,
}

impl Joiner {
    /// Returns whether a train is in progress.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.first.is_some()
    }

    /// Starts a train with a part.
    pub fn start(&mut self, part: TrainPart, bytes: &[u8], offload: Offload) {
        self.buffer.clear();
        self.buffer.extend_from_slice(bytes);
        self.next = usize::from(part.index) + part.frames(bytes.len());
        self.parts = 1;
        self.offload = offload;
        self.flags = 0;
        self.headers = Headers::parse(bytes).filter(|headers| joins(part.segments, headers, bytes));
        self.first = Some(part);
    }

    /// Appends a part if it continues the train, and returns whether it does.
    pub fn append(&mut self, part: TrainPart, bytes: &[u8]) -> bool {
        let (Some(first), Some(headers)) = (self.first, self.headers) else {
            return false;
        };
        let continues = part.train == first.train
            && usize::from(part.index) == self.next
            && part.segments == first.segments;
        let Some(payload) = bytes.get(headers.payload_at..).filter(|_| continues) else {
            return false;
        };
        if self.buffer.len() + payload.len() > JOINED_MAX {
            return false;
        }
        self.buffer.extend_from_slice(payload);
        if headers.transport == Transport::Tcp {
            self.flags = bytes[headers.transport_at() + 13];
        }
        self.next += part.frames(bytes.len());
        self.parts += 1;
        true
    }

    /// Completes the headers and returns the train with its offload.
    pub fn finish(&mut self) -> (&[u8], Offload) {
        if let (Some(first), Some(headers), 2..) = (self.first, self.headers, self.parts) {
            let segments = Some(first.segments);
            let checksum = finish_headers(&mut self.buffer, &headers, self.flags);
            self.offload = Offload { checksum, segments };
            self.parts = 1;
        }
        (&self.buffer, self.offload)
    }

    /// Discards the train once the port has taken it.
    pub fn clear(&mut self) {
        self.first = None;
    }
}

/// Returns whether parts with these headers can be joined: the device must be able to compute a
/// checksum per segment.
fn joins(segments: Segments, headers: &Headers, bytes: &[u8]) -> bool {
    segments.fit(headers)
        && headers.ip.end == bytes.len()
        && !checksum::has_no_checksum(bytes, headers)
}

/// Writes a train's lengths, the last segment's flags and the checksums.
pub(super) fn finish_headers(
    frame: &mut [u8],
    headers: &Headers,
    flags: u8,
) -> Option<super::Checksum> {
    write_network_header(frame, &headers.ip, 0);
    let at = headers.transport_at();
    match headers.transport {
        Transport::Udp => put_len(frame, at + 4, frame.len() - at),
        Transport::Tcp => frame[at + 13] |= flags & TCP_LAST_ONLY,
    }
    write_unfinished_checksum(frame, headers)
}
