//! Capture files in and out: classic pcap and pcapng.
//!
//! [`CaptureReader`] and [`CaptureWriter`] serve programs that work in the
//! files' own time; [`PcapRx`] and [`PcapTx`] are ports on top of them. Why
//! these are our own is told in `docs/decisions/0003-capture-files.md`.

use std::os::unix::fs::MetadataExt;

mod ahead;
mod classic;
mod format;
mod link_type;
mod ng;
mod ng_interface;
mod place;
mod raw;
mod reader;
mod rx;
mod source;
mod tx;
mod unpack;
mod writer;
mod zstd;

pub use link_type::Reframed;
pub use reader::{CaptureReader, Record, Step};
pub use rx::PcapRx;
pub use tx::PcapTx;
pub use unpack::Packing;
pub use writer::{CaptureFormat, CaptureWriter};

/// Whether two paths lead to one file, so that creating the second would
/// empty the first.
pub fn same_file(first: &str, second: &str) -> bool {
    let identity = |path| {
        let metadata = std::fs::metadata(path).ok()?;
        metadata
            .is_file()
            .then_some((metadata.dev(), metadata.ino()))
    };
    identity(first).is_some_and(|file| identity(second) == Some(file))
}

/// Longest captured frame that is read or written, in bytes: what other
/// capture tools allow for Ethernet.
pub(crate) const CAPTURED_MAX: u32 = 256 * 1024;
