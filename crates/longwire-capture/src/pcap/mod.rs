//! Reading and writing capture files: classic pcap and pcapng.

use std::os::unix::fs::MetadataExt;

mod ahead;
mod behind;
mod classic;
mod counts;
mod error;
mod format;
mod link_type;
mod ng;
mod ng_interface;
mod payload;
mod raw;
mod reader;
mod source;
mod unpack;
mod wireless;
mod writer;
mod zstd;

pub use behind::Batches;
pub use counts::{LeftOut, RecordCounts};
pub use error::CaptureError;
pub use reader::{CaptureReader, Record, Step};
pub use unpack::Packing;
pub use writer::{CaptureFormat, CaptureWriter};

/// Returns whether two paths lead to one file, so that creating the second
/// would empty the first.
pub fn same_file(first: &str, second: &str) -> bool {
    let identity = |path| {
        let metadata = std::fs::metadata(path).ok()?;
        metadata
            .is_file()
            .then_some((metadata.dev(), metadata.ino()))
    };
    identity(first).is_some_and(|file| identity(second) == Some(file))
}

/// Longest captured frame that is read or written, in bytes: the limit of
/// other capture tools for Ethernet.
pub const CAPTURED_MAX: u32 = 256 * 1024;
