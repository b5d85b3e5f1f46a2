//! Reading and writing of capture files: classic pcap and pcapng.

mod ahead;
mod classic;
mod counts;
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
pub use ahead::Batches;
pub use counts::{LeftOut, RecordCounts};
pub use reader::{CaptureReader, Record, Step};
pub use unpack::Packing;
pub use writer::{CaptureFormat, CaptureWriter, complete_block, push_frame};

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Whether two paths refer to the same file, so that creating the second would truncate the first.
pub fn same_file(first: &str, second: &str) -> bool {
    let identity = |path| {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some((metadata.dev(), metadata.ino()))
    };
    identity(first).is_some_and(|file| identity(second) == Some(file))
}

/// Maximum captured bytes per frame, for reading and writing; other capture tools have the same
/// limit for Ethernet.
pub const CAPTURED_MAX: u32 = 256 * 1024;

/// Error in reading or writing a capture file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CaptureError {
    #[error("{file}: {action}: {source}")]
    File {
        file: String,
        action: &'static str,
        source: io::Error,
    },
    #[error("{file}: {reason}")]
    Unsupported { file: String, reason: String },
    #[error("{file}: at byte {offset}: {reason}")]
    Malformed {
        file: String,
        offset: u64,
        reason: String,
    },
}

impl CaptureError {
    /// Returns the error for a failed system call on a file.
    pub(super) fn file(file: &str, action: &'static str, source: io::Error) -> CaptureError {
        let file = file.to_owned();
        CaptureError::File {
            file,
            action,
            source,
        }
    }

    pub(super) fn unsupported(file: &str, reason: impl Into<String>) -> CaptureError {
        let (file, reason) = (file.to_owned(), reason.into());
        CaptureError::Unsupported { file, reason }
    }
}
