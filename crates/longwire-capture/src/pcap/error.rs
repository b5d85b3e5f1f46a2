//! Errors of reading and writing capture files.

use std::io;

/// Error of reading or writing a capture file.
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
    /// Returns the error of a system call on a file.
    pub(super) fn file(file: &str, action: &'static str, source: io::Error) -> CaptureError {
        CaptureError::File {
            file: file.to_owned(),
            action,
            source,
        }
    }
}
