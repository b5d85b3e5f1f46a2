//! Port errors.

use std::io;

use longwire_capture::CaptureError;

/// Failure to open or use a port.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PortError {
    #[error("no interface '{name}'; interfaces are {present}")]
    NoInterface { name: String, present: String },
    #[error("interface '{name}' is down; bring it up with: ip link set dev {name} up")]
    Down { name: String },
    #[error("{port}: {action}: {source}")]
    Denied {
        port: String,
        action: &'static str,
        source: io::Error,
    },
    #[error("{port}: {action}: {source}")]
    Failed {
        port: String,
        action: &'static str,
        source: io::Error,
    },
    #[error("{port}: {holder} {conflict}; {remedy}")]
    InUse {
        port: String,
        interface: String,
        /// The process, as the subject of a sentence.
        holder: String,
        conflict: &'static str,
        remedy: String,
        /// Whether a port that only copies arriving frames would be allowed.
        only_by_xdp: bool,
    },
    #[error("{port} is gone: {source}")]
    Gone { port: String, source: io::Error },
    #[error("{port}: {reason}")]
    Unsupported { port: String, reason: String },
    #[error("{path}: at byte {offset}: {reason}")]
    Malformed {
        path: String,
        offset: u64,
        reason: String,
    },
    #[error("'{text}' is not a port; write one of {known}")]
    Unknown { text: String, known: String },
}

impl PortError {
    pub(super) fn unsupported(port: impl Into<String>, reason: impl Into<String>) -> PortError {
        PortError::Unsupported {
            port: port.into(),
            reason: reason.into(),
        }
    }

    /// Returns a system call's error: `Denied` if a right is missing.
    pub(super) fn of(port: String, action: &'static str, source: io::Error) -> PortError {
        match source.kind() {
            io::ErrorKind::PermissionDenied => PortError::Denied {
                port,
                action,
                source,
            },
            _ => PortError::Failed {
                port,
                action,
                source,
            },
        }
    }
}

impl From<CaptureError> for PortError {
    fn from(error: CaptureError) -> PortError {
        match error {
            CaptureError::File {
                file: port,
                action,
                source,
            } => PortError::of(port, action, source),
            CaptureError::Unsupported { file: port, reason } => {
                PortError::Unsupported { port, reason }
            }
            CaptureError::Malformed {
                file: path,
                offset,
                reason,
            } => PortError::Malformed {
                path,
                offset,
                reason,
            },
        }
    }
}
