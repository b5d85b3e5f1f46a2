//! Interfaces in a pcapng section, the times of their frames, and block options.

use super::counts::LeftOut;
use super::link_type::Framing;
use super::source::Order;

const OPTION_NAME: u16 = 2;
const OPTION_TSRESOL: u16 = 9;
const OPTION_FCSLEN: u16 = 13;
const OPTION_TSOFFSET: u16 = 14;

/// Maximum number of bytes kept of a name.
const NAME_MAX: usize = 256;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Conversion of an interface's clock ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Nanoseconds per tick.
    Times(u64),
    /// Ticks per nanosecond.
    Parts(u64),
    /// 2^n ticks per second.
    PowerOfTwo(u32),
}

impl Resolution {
    /// Returns the resolution specified by the option `if_tsresol`: a negative exponent of ten or,
    /// if the highest bit is set, of two.
    fn from_option(byte: u8) -> Resolution {
        let exponent = u32::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            return Resolution::PowerOfTwo(exponent);
        }
        match exponent {
            0..=9 => Resolution::Times(10u64.pow(9 - exponent)),
            // With a finer clock, all times are within the first nanosecond.
            _ => Resolution::Parts(10u64.checked_pow(exponent - 9).unwrap_or(u64::MAX)),
        }
    }
}

/// An interface on which frames of a section were captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    /// Conversion of its frames to Ethernet, or the reason for skipping them.
    pub(super) framing: Result<Framing, LeftOut>,
    /// Maximum captured bytes per frame; `u32::MAX` without a limit.
    pub(super) snapshot_len: u32,
    /// Length of the FCS at the end of each frame, in bytes.
    pub(super) fcs_len: u32,
    resolution: Resolution,
    /// Seconds to add to each time.
    offset_secs: i64,
}

impl Interface {
    /// Parses an interface description: link type, two reserved bytes, snapshot length, options.
    /// Returns the interface and its name, which may be empty.
    ///
    /// # Errors
    /// The offset of the error in `body`, and the reason.
    pub(super) fn parse(
        order: Order,
        body: &[u8],
    ) -> Result<(Interface, String), (usize, &'static str)> {
        if body.len() < 8 {
            return Err((0, "interface description block without snapshot length"));
        }
        let link_type = u32::from(order.u16(body, 0));
        let mut interface = Interface {
            framing: Framing::of(link_type).ok_or(LeftOut::LinkType(link_type)),
            snapshot_len: match order.u32(body, 4) {
                0 => u32::MAX,
                snapshot => snapshot,
            },
            fcs_len: 0,
            resolution: Resolution::from_option(6),
            offset_secs: 0,
        };
        let mut name = String::new();
        let options = Options {
            order,
            bytes: body,
            at: 8,
        };
        for option in options {
            let past_end = |at| (at, "option extends past the end of its block");
            let (at, code, value) = option.map_err(past_end)?;
            let len = value.len();
            match (code, len) {
                (OPTION_NAME, _) => {
                    let kept = String::from_utf8_lossy(&value[..len.min(NAME_MAX)]);
                    name = kept.trim_end_matches('\0').to_owned();
                }
                (OPTION_TSRESOL, 1) => interface.resolution = Resolution::from_option(value[0]),
                (OPTION_FCSLEN, 1) => interface.fcs_len = fcs_bytes(value[0]),
                (OPTION_TSOFFSET, 8) => interface.offset_secs = signed(order, value),
                (OPTION_TSRESOL | OPTION_FCSLEN | OPTION_TSOFFSET, _) => {
                    return Err((at, "option with an invalid length"));
                }
                _ => {}
            }
        }
        Ok((interface, name))
    }

    /// Returns nanoseconds of Unix time, or `None` for times before 1970 or after 2554.
    #[inline]
    pub(super) fn nanos(&self, ticks: u64) -> Option<u64> {
        let nanos = match self.resolution {
            Resolution::Times(times) => u128::from(ticks) * u128::from(times),
            Resolution::Parts(parts) => u128::from(ticks / parts),
            Resolution::PowerOfTwo(exponent) => {
                (u128::from(ticks) * u128::from(NANOS_PER_SEC)) >> exponent
            }
        };
        if self.offset_secs == 0 {
            return u64::try_from(nanos).ok();
        }
        let offset = i128::from(self.offset_secs) * i128::from(NANOS_PER_SEC);
        // Both operands are below 2^96.
        u64::try_from(nanos as i128 + offset).ok()
    }
}

/// Returns the length of the FCS in bytes from the option `if_fcslen`, which is in bits. Some
/// writers use bytes; no FCS is shorter than eight bits.
fn fcs_bytes(len: u8) -> u32 {
    match len {
        0..8 => u32::from(len),
        bits => u32::from(bits).div_ceil(8),
    }
}

fn signed(order: Order, value: &[u8]) -> i64 {
    let [first, second] = [0, 4].map(|at| u64::from(order.u32(value, at)));
    let joined = match order {
        Order::Big => first << 32 | second,
        Order::Little => second << 32 | first,
    };
    joined as i64
}

const END: u16 = 0;

/// Iterates over the options in part of a block. Each has a code, a length and a padded value, and
/// is returned with its offset.
#[derive(Clone, Debug)]
pub(super) struct Options<'a> {
    pub(super) order: Order,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// An option's offset, code and value.
pub(super) type BlockOption<'a> = (usize, u16, &'a [u8]);

impl<'a> Iterator for Options<'a> {
    /// `Err` contains the offset of an option that extends beyond its block.
    type Item = Result<BlockOption<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        // At the end of the block, the end-of-options mark may be missing.
        let head = self.bytes.get(at..at + 4)?;
        let (code, len) = (self.order.u16(head, 0), self.order.u16(head, 2));
        if code == END {
            return None;
        }
        let len = usize::from(len);
        self.at += 4 + len.next_multiple_of(4);
        let value = self.bytes.get(at + 4..at + 4 + len);
        Some(value.map(|value| (at, code, value)).ok_or(at))
    }
}
