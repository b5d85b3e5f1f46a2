//! Reading classic pcap: a file header, then records, all in the byte order and
//! time unit given by the first four bytes (draft-ietf-opsawg-pcap, "PCAP Capture
//! File Format").

use super::CAPTURED_MAX;
use super::link_type::{self, ETHERNET_LEN, Framing};
use super::place::Place;
use super::source::{FillResult, Order, Source, Stop};

const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

/// Bit of the link type field: frames end with their checksum.
const FCS_PRESENT: u32 = 1 << 26;

/// Contents of the file header.
#[derive(Debug)]
pub(super) struct Classic {
    order: Order,
    /// 1,000 in files with microseconds, else 1.
    nanos_per_tick: u64,
    captured_max: u32,
    /// Bytes of frame checksum at the end of each frame.
    fcs_len: u32,
    framing: Framing,
}

impl Classic {
    /// Returns the byte order and the nanoseconds per tick if `magic` begins a
    /// classic capture.
    pub(super) fn recognise(magic: [u8; 4]) -> Option<(Order, u64)> {
        match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => Some((Order::Little, 1_000)),
            [0xa1, 0xb2, 0xc3, 0xd4] => Some((Order::Big, 1_000)),
            [0x4d, 0x3c, 0xb2, 0xa1] => Some((Order::Little, 1)),
            [0xa1, 0xb2, 0x3c, 0x4d] => Some((Order::Big, 1)),
            _ => None,
        }
    }

    /// Reads the file header.
    pub(super) fn open(source: &mut Source, order: Order, nanos: u64) -> Result<Classic, Stop> {
        if let FillResult::Ended(held) = source.need(HEADER_LEN)? {
            return Err(Stop::Malformed {
                offset: 0,
                reason: format!("the file header is cut: {held} of {HEADER_LEN} bytes"),
            });
        }
        let header = source.held();
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        if (major, minor) != (2, 4) {
            return Err(Stop::Malformed {
                offset: 4,
                reason: format!("pcap version {major}.{minor}; only 2.4 is known"),
            });
        }
        let captured_max = match order.u32(header, 16) {
            0 => CAPTURED_MAX,
            snapshot => snapshot.min(CAPTURED_MAX),
        };
        let field = order.u32(header, 20);
        let Some(framing) = Framing::of(field & 0xffff) else {
            return Err(Stop::Unsupported(link_type::refusal(field & 0xffff)));
        };
        let fcs_len = match field & FCS_PRESENT {
            0 => 0,
            // The field counts units of 16 bits.
            _ => (field >> 28) * 2,
        };
        source.consume(HEADER_LEN);
        Ok(Classic {
            order,
            nanos_per_tick: nanos,
            captured_max,
            fcs_len,
            framing,
        })
    }

    /// Returns the length of the longest possible frame.
    pub(super) fn frame_max(&self) -> usize {
        match self.framing {
            Framing::Ethernet => self.captured_max as usize,
            _ => self.captured_max as usize + ETHERNET_LEN,
        }
    }

    /// Reads an ordinary record that lies entirely in the block, as nearly all
    /// do. [`Classic::advance`] reads the others.
    #[inline]
    pub(super) fn quick(&self, source: &mut Source) -> Option<Place> {
        let held = source.held();
        let header: &[u8; RECORD_HEADER_LEN] = held.first_chunk()?;
        let [seconds, ticks, captured, original] = self.order.words(header);
        let len = RECORD_HEADER_LEN + captured as usize;
        if captured > self.captured_max || held.len() < len || self.framing != Framing::Ethernet {
            return None;
        }
        let stamp = self.stamp(seconds, ticks);
        let at = source.consume(len) + RECORD_HEADER_LEN;
        Some(Place::new(stamp, at, captured, original, self.fcs_len))
    }

    /// Returns the frame of an ordinary record at the beginning of `held`, its length on
    /// the wire, and the bytes after the record.
    pub(super) fn peek<'a>(&self, held: &'a [u8]) -> Option<(&'a [u8], u32, &'a [u8])> {
        let (header, rest) = held.split_first_chunk::<RECORD_HEADER_LEN>()?;
        let [_, _, captured, original] = self.order.words(header);
        if captured > self.captured_max || self.framing != Framing::Ethernet {
            return None;
        }
        let (frame, rest) = rest.split_at_checked(captured as usize)?;
        let place = Place::new(0, 0, captured, original, self.fcs_len);
        Some((&frame[..place.len as usize], place.wire_len, rest))
    }

    /// Converts a stamp to nanoseconds. A fraction of a second or more is carried
    /// over, not refused: its meaning is clear.
    #[inline]
    fn stamp(&self, seconds: u32, ticks: u32) -> u64 {
        u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * self.nanos_per_tick
    }

    /// Reads a record.
    pub(super) fn advance(&self, source: &mut Source) -> Result<Option<Place>, Stop> {
        match source.need(RECORD_HEADER_LEN)? {
            FillResult::Ready => {}
            FillResult::Ended(0) => return Ok(None),
            FillResult::Ended(held) => return Err(cut(source, held, RECORD_HEADER_LEN, "header")),
        }
        let header = source.held();
        let stamp = self.stamp(self.order.u32(header, 0), self.order.u32(header, 4));
        let captured = self.order.u32(header, 8);
        let original = self.order.u32(header, 12);
        if captured > self.captured_max {
            return Err(Stop::Malformed {
                offset: source.offset(),
                reason: format!(
                    "a record of {captured} bytes in a file of at most {} bytes a frame",
                    self.captured_max
                ),
            });
        }
        let len = RECORD_HEADER_LEN + captured as usize;
        if let FillResult::Ended(held) = source.need(len)? {
            return Err(cut(source, held, len, "data"));
        }
        let at = source.consume(len) + RECORD_HEADER_LEN;
        let place = Place::new(stamp, at, captured, original, self.fcs_len);
        Ok(Some(place.framed(self.framing)))
    }
}

#[cold]
fn cut(source: &Source, held: usize, len: usize, part: &str) -> Stop {
    Stop::Malformed {
        offset: source.offset(),
        reason: format!("the file ends within a record's {part}: {held} of {len} bytes are there"),
    }
}
