//! Filters: which frames are meant, written like those of tcpdump or, in
//! part, like those of Wireshark.

mod arithmetic;
mod facts;
mod fields;
mod names;
mod own;
mod parser;
mod primitives;
mod tokens;
pub(crate) mod values;

use core::str::FromStr;

use facts::{Facts, Node};

pub use tokens::FilterError;

/// Which frames are meant. Read from text, then asked of each frame: that
/// takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// What is wrong with it, in which column, and what would be accepted.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let root = parser::parse(text)?;
        Ok(Filter { root })
    }

    /// Whether a frame of `wire_len` bytes, of which `bytes` are its first, is
    /// meant. A test of bytes that are not there fails.
    pub fn matches(&self, bytes: &[u8], wire_len: u32) -> bool {
        self.root.matches(&Facts::of(bytes, wire_len))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(text)
    }
}
