//! Options of pcapng blocks: a code, a length and a padded value each.

use super::source::Order;

const END: u16 = 0;

/// The options in a part of a block, each with its offset there.
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
