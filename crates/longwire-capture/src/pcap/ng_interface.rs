//! Interfaces of a pcapng section, the times of their frames, and the options of blocks.

use super::counts::LeftOut;
use super::link_type::Framing;
use super::source::Order;

const OPTION_NAME: u16 = 2;
const OPTION_TSRESOL: u16 = 9;
const OPTION_FCSLEN: u16 = 13;
const OPTION_TSOFFSET: u16 = 14;

/// Bytes of a name that are kept.
const NAME_MAX: usize = 256;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Conversion from ticks of an interface's clock to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// A tick is this many nanoseconds.
    Times(u64),
    /// A nanosecond is this many ticks.
    Parts(u64),
    /// A second is 2^n ticks.
    PowerOfTwo(u32),
}

impl Resolution {
    /// Returns the resolution for the byte of the option `if_tsresol`: an
    /// exponent of ten, or of two if the highest bit is set.
    fn from_option(byte: u8) -> Resolution {
        let exponent = u32::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            return Resolution::PowerOfTwo(exponent);
        }
        match exponent {
            0..=9 => Resolution::Times(10u64.pow(9 - exponent)),
            // With a clock finer than this, every time is within the first
            // nanosecond.
            _ => Resolution::Parts(10u64.checked_pow(exponent - 9).unwrap_or(u64::MAX)),
        }
    }
}

/// An interface that frames of a section were captured on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    /// Conversion of its frames to Ethernet, or the reason why they are left out.
    pub(super) framing: Result<Framing, LeftOut>,
    /// Most bytes that are captured of a frame; `u32::MAX` without a limit.
    pub(super) snapshot_len: u32,
    /// Bytes of check sequence at the end of each frame.
    pub(super) fcs_len: u32,
    resolution: Resolution,
    /// Seconds to add to each time.
    offset_secs: i64,
}

impl Interface {
    /// Reads the body of an interface description: link type, two reserved bytes,
    /// snapshot length, options. Returns it with its name, empty where there is
    /// none.
    ///
    /// # Errors
    /// The offset of the fault in `body`, and the reason.
    pub(super) fn parse(
        order: Order,
        body: &[u8],
    ) -> Result<(Interface, String), (usize, &'static str)> {
        if body.len() < 8 {
            return Err((0, "interface description without snapshot length"));
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
        for option in Options::of(order, body, 8) {
            let (at, code, value) =
                option.map_err(|at| (at, "option beyond the end of its block"))?;
            let len = value.len();
            match (code, len) {
                (OPTION_NAME, _) => {
                    let kept = &value[..len.min(NAME_MAX)];
                    name = String::from_utf8_lossy(kept)
                        .trim_end_matches('\0')
                        .to_owned();
                }
                (OPTION_TSRESOL, 1) => interface.resolution = Resolution::from_option(value[0]),
                (OPTION_FCSLEN, 1) => interface.fcs_len = fcs_bytes(value[0]),
                (OPTION_TSOFFSET, 8) => interface.offset_secs = signed(order, value),
                (OPTION_TSRESOL | OPTION_FCSLEN | OPTION_TSOFFSET, _) => {
                    return Err((at, "option with wrong length"));
                }
                _ => {}
            }
        }
        Ok((interface, name))
    }

    /// Returns nanoseconds since 1970; `None` for times before, and after 2554.
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

/// Returns the bytes of a check sequence from the option `if_fcslen`, which counts bits;
/// some writers count bytes, and no check sequence has fewer than eight bits.
fn fcs_bytes(len: u8) -> u32 {
    match len {
        0..8 => u32::from(len),
        bits => u32::from(bits).div_ceil(8),
    }
}

fn signed(order: Order, value: &[u8]) -> i64 {
    let (first, second) = (
        u64::from(order.u32(value, 0)),
        u64::from(order.u32(value, 4)),
    );
    let joined = match order {
        Order::Big => first << 32 | second,
        Order::Little => second << 32 | first,
    };
    joined as i64
}

const END: u16 = 0;

/// The options in a part of a block, each with its offset there: a code, a length and a padded
/// value.
#[derive(Clone, Debug)]
pub(super) struct Options<'a> {
    order: Order,
    bytes: &'a [u8],
    at: usize,
}

/// An option: its offset, code and value.
pub(super) type BlockOption<'a> = (usize, u16, &'a [u8]);

impl<'a> Options<'a> {
    /// Returns the options of `bytes` from the offset `at` on.
    pub(super) fn of(order: Order, bytes: &'a [u8], at: usize) -> Options<'a> {
        Options { order, bytes, at }
    }
}

impl<'a> Iterator for Options<'a> {
    /// `Err` holds the offset of an option that reaches beyond its block.
    type Item = Result<BlockOption<'a>, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        // At the end of the block, the mark that ends the options may be missing.
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
