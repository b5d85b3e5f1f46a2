//! Errors of a control API that is set up.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::Address;

/// Errors of a control API that is set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The configuration is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file, directory or socket that the configuration names.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A TCP address that cannot be listened at.
    #[error("--control {address}: cannot listen: {source}")]
    Listen {
        /// The address.
        address: Address,
        /// The error of the system.
        source: io::Error,
    },
    /// Its threads.
    #[error("the control API cannot be started: {0}")]
    Start(io::Error),
    /// The address of a listener cannot be read.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The system refuses to make or open a socket.
pub(crate) const CANNOT_LISTEN: &str = "cannot listen";

impl ControlError {
    /// Turns an error of the system into one about a file.
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

    /// Whether the configuration is wrong, rather than the system refuses.
    pub fn is_usage(&self) -> bool {
        matches!(self, ControlError::Usage(_))
    }

    /// The path of a socket in a directory in which this user may not write.
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
