//! Errors while setting up a control API.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use longwire_client::Address;

/// An error while setting up a control API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Invalid configuration.
    #[error("{0}")]
    Usage(String),
    /// An operation on a file, directory or socket failed.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// Path of the file, directory or socket.
        path: PathBuf,
        /// Action that failed.
        action: &'static str,
        /// Underlying error.
        source: io::Error,
    },
    /// Listening on a TCP address failed.
    #[error("--control {address}: cannot listen: {source}")]
    Listen {
        /// TCP address.
        address: Address,
        /// Underlying error.
        source: io::Error,
    },
    /// The threads could not be started.
    #[error("cannot start the control API: {0}")]
    Start(io::Error),
}

/// Action that fails if a socket cannot be created or opened.
pub(crate) const CANNOT_LISTEN: &str = "cannot listen";

impl ControlError {
    /// Returns a wrapper for errors when listening at an address.
    pub(crate) fn listen(address: SocketAddr) -> impl Fn(io::Error) -> ControlError {
        move |source| ControlError::Listen {
            address: Address::Tcp(address),
            source,
        }
    }

    /// Returns a wrapper that adds a path and an action to system errors.
    pub(crate) fn file<E: Into<io::Error>>(
        path: &Path,
        action: &'static str,
    ) -> impl Fn(E) -> ControlError {
        move |source| ControlError::File {
            path: path.to_owned(),
            action,
            source: source.into(),
        }
    }

    /// Returns whether the configuration is invalid.
    pub fn is_usage(&self) -> bool {
        matches!(self, ControlError::Usage(_))
    }

    /// Returns the path of a socket in a directory that this user may not write to.
    pub fn denied_socket(&self) -> Option<&Path> {
        match self {
            ControlError::File {
                path,
                action: CANNOT_LISTEN,
                source,
            } if source.kind() == ErrorKind::PermissionDenied => Some(path),
            _ => None,
        }
    }
}
