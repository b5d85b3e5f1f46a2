//! Classic pcap input: a file header followed by records, in the byte order and time unit
//! determined by the first four bytes (draft-ietf-opsawg-pcap, "PCAP Capture File Format").

use super::CAPTURED_MAX;
use super::link_type::{self, Framing, Place};
use super::source::{FillResult, Order, Source, Stop};

const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// Length of a record header in Kuznetzov's format, which adds an interface, a protocol and a
/// packet type.
const PATCHED_HEADER_LEN: usize = 24;

/// Link type bit: frames end with their FCS.
const FCS_PRESENT: u32 = 1 << 26;

/// Properties of records, determined by a file's first four bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magic {
    order: Order,
    /// 1,000 in files with microsecond timestamps, else 1.
    nanos_per_tick: u64,
    header_len: usize,
}

/// Whether record headers contain the original length before the captured length, which is the
/// order of versions before 2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swapped {
    No,
    /// Writers of version 2.3 use either order; the captured length is the smaller one.
    Perhaps,
    Yes,
}

/// Contents of the file header.
#[derive(Debug)]
pub(super) struct Classic {
    magic: Magic,
    swapped: Swapped,
    /// Length of the FCS at the end of each frame, in bytes.
    fcs_len: u32,
    framing: Framing,
    /// Whether records have ordinary headers and Ethernet frames.
    is_plain: bool,
}

impl Classic {
    /// Returns the record properties if `magic` starts a classic capture.
    pub(super) fn recognise(magic: [u8; 4]) -> Option<Magic> {
        let of = |number| match number {
            0xa1b2_c3d4 => Some((1_000, RECORD_HEADER_LEN)),
            0xa1b2_3c4d => Some((1, RECORD_HEADER_LEN)),
            0xa1b2_cd34 => Some((1_000, PATCHED_HEADER_LEN)),
            _ => None,
        };
        [Order::Little, Order::Big].into_iter().find_map(|order| {
            let (nanos_per_tick, header_len) = of(order.u32(&magic, 0))?;
            Some(Magic {
                order,
                nanos_per_tick,
                header_len,
            })
        })
    }

    /// Reads the file header.
    pub(super) fn open(source: &mut Source, magic: Magic) -> Result<Classic, Stop> {
        if let FillResult::Ended(held) = source.need(HEADER_LEN)? {
            let reason = format!("truncated file header: {held} of {HEADER_LEN} bytes");
            return Err(Stop::malformed(0, reason));
        }
        let (header, order) = (source.held(), magic.order);
        let swapped = match (order.u16(header, 4), order.u16(header, 6)) {
            // 543.0 is the version of DG/UX.
            (2, 0..=2) | (543, 0) => Swapped::Yes,
            (2, 3) => Swapped::Perhaps,
            (2, 4) => Swapped::No,
            (major, minor) => {
                let reason = format!("pcap version {major}.{minor}; supported: up to 2.4");
                return Err(Stop::malformed(4, reason));
            }
        };
        let field = order.u32(header, 20);
        let Some(framing) = Framing::of(field & 0xffff) else {
            return Err(Stop::Unsupported(link_type::refusal(field & 0xffff)));
        };
        // The length is in 16-bit units.
        let fcs_len = if field & FCS_PRESENT == 0 {
            0
        } else {
            (field >> 28) * 2
        };
        source.consume(HEADER_LEN);
        Ok(Classic {
            magic,
            swapped,
            fcs_len,
            framing,
            is_plain: swapped == Swapped::No
                && framing == Framing::Ethernet
                && magic.header_len == RECORD_HEADER_LEN,
        })
    }

    /// Reads an ordinary record that lies entirely in the block, which nearly all records do.
    /// Returns `None` for other records, which [`Classic::advance`] reads.
    #[inline]
    pub(super) fn quick(&self, source: &mut Source) -> Option<Place> {
        let held = source.held();
        let header: &[u8; RECORD_HEADER_LEN] = held.first_chunk()?;
        let [seconds, ticks, captured, original] = self.magic.order.words(header);
        let len = RECORD_HEADER_LEN + captured as usize;
        if captured > CAPTURED_MAX || held.len() < len || !self.is_plain {
            return None;
        }
        let stamp = self.stamp(seconds, ticks);
        let at = source.consume(len) + RECORD_HEADER_LEN;
        Some(Place::new(stamp, at, captured, original, self.fcs_len))
    }

    /// Returns the frame of an ordinary record at the start of `held`, its wire length, and the
    /// bytes after the record.
    pub(super) fn peek<'a>(&self, held: &'a [u8]) -> Option<(&'a [u8], u32, &'a [u8])> {
        let (header, rest) = held.split_first_chunk::<RECORD_HEADER_LEN>()?;
        let [_, _, captured, original] = self.magic.order.words(header);
        if captured > CAPTURED_MAX || !self.is_plain {
            return None;
        }
        let (frame, rest) = rest.split_at_checked(captured as usize)?;
        let place = Place::new(0, 0, captured, original, self.fcs_len);
        Some((&frame[..place.len as usize], place.wire_len, rest))
    }

    /// Converts a timestamp to nanoseconds. A fraction of one second or more carries over into the
    /// seconds.
    #[inline]
    fn stamp(&self, seconds: u32, ticks: u32) -> u64 {
        u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * self.magic.nanos_per_tick
    }

    /// Reads a record. It may exceed the file header's snapshot length, which some writers ignore.
    pub(super) fn advance(&self, source: &mut Source) -> Result<Option<Place>, Stop> {
        let header_len = self.magic.header_len;
        match source.need(header_len)? {
            FillResult::Ready => {}
            FillResult::Ended(0) => return Ok(None),
            FillResult::Ended(held) => return Err(cut(source, held, header_len, "header")),
        }
        let field = |at| self.magic.order.u32(source.held(), at);
        let stamp = self.stamp(field(0), field(4));
        let (mut captured, mut original) = (field(8), field(12));
        if self.swapped == Swapped::Yes || self.swapped == Swapped::Perhaps && captured > original {
            (captured, original) = (original, captured);
        }
        if captured > CAPTURED_MAX {
            let reason = format!("record of {captured} bytes; the maximum is {CAPTURED_MAX}");
            return Err(Stop::malformed(source.offset(), reason));
        }
        let len = header_len + captured as usize;
        if let FillResult::Ended(held) = source.need(len)? {
            return Err(cut(source, held, len, "data"));
        }
        let at = source.consume(len) + header_len;
        let place = Place::new(stamp, at, captured, original, self.fcs_len);
        Ok(Some(place.framed(self.framing)))
    }
}

#[cold]
fn cut(source: &Source, held: usize, len: usize, part: &str) -> Stop {
    let reason = format!("truncated record {part}: {held} of {len} bytes");
    Stop::malformed(source.offset(), reason)
}
