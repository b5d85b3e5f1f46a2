//! Places in which containers were looked for.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::container::Container;

/// A socket or directory in which containers were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket or directory.
    pub path: PathBuf,
    /// The outcome.
    pub state: PlaceState,
}

/// Outcome of a search in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// It was read, and has this number of containers.
    Read(usize),
    /// It does not exist.
    Absent,
    /// This user may not read it.
    Denied,
    /// It could not be read.
    Failed(String),
}

/// The containers of a place.
#[derive(Debug)]
pub struct Reading {
    /// The socket or directory.
    pub path: PathBuf,
    /// Its containers.
    pub containers: io::Result<Vec<Container>>,
}

impl Reading {
    /// Returns the place with the outcome.
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
