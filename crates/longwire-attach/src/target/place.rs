//! Places searched for containers.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::container::Container;

/// A socket or directory searched for containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket or directory.
    pub path: PathBuf,
    /// Result of the search.
    pub state: PlaceState,
}

/// Result of the search of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// Read; the number of containers.
    Read(usize),
    /// Does not exist.
    Absent,
    /// Permission denied.
    Denied,
    /// Read error.
    Failed(String),
}

/// Contents of a place.
#[derive(Debug)]
pub struct Reading {
    /// The socket or directory.
    pub path: PathBuf,
    /// Its containers, or the error.
    pub containers: io::Result<Vec<Container>>,
}

impl Reading {
    /// Returns the place with its result.
    pub fn place(&self) -> Place {
        let state = match &self.containers {
            Ok(containers) => PlaceState::Read(containers.len()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => PlaceState::Absent,
                io::ErrorKind::PermissionDenied => PlaceState::Denied,
                _ => PlaceState::Failed(error.to_string()),
            },
        };
        Place {
            path: self.path.clone(),
            state,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.state {
            PlaceState::Read(1) => write!(f, "1 container"),
            PlaceState::Read(count) => write!(f, "{count} containers"),
            PlaceState::Absent => write!(f, "does not exist"),
            PlaceState::Denied => write!(f, "permission denied"),
            PlaceState::Failed(reason) => write!(f, "{reason}"),
        }
    }
}
