//! What can go wrong at a port.

use std::io;

/// Why a port could not be opened, or stopped working.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PortError {
    #[error("no interface '{name}' here; there are {present}")]
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
        /// The process, as a subject of a sentence.
        holder: String,
        conflict: &'static str,
        remedy: String,
        /// A port that does not take frames away would be no conflict.
        only_by_xdp: bool,
    },
    #[error("{port} went away: {source}")]
    Gone { port: String, source: io::Error },
    #[error("{port}: {reason}")]
    Unsupported { port: String, reason: String },
    #[error("{path}: at byte {offset}: {reason}")]
    Malformed {
        path: String,
        offset: u64,
        reason: String,
    },
    #[error("'{text}' is no port; write one of {known}")]
    Unknown { text: String, known: String },
}
