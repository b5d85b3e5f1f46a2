//! The directory of records.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};

use crate::run_directory;

/// Another process that changes settings is waited for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the names of records begin with.
const PREFIX: &str = "settings-";

/// The directory of records, locked: one process at a time changes settings
/// or restores them.
pub(super) struct Directory {
    /// `None` where there is none.
    locked: Option<(PathBuf, Flock<File>)>,
}

impl Directory {
    pub(super) fn lock() -> Directory {
        let lock = || -> Option<(PathBuf, Flock<File>)> {
            let path = run_directory::own()?;
            run_directory::create(&path).ok()?;
            // Records of others are not believed.
            if !run_directory::is_private(&path) {
                return None;
            }
            let lock = lock_within(File::open(&path).ok()?, PATIENCE)?;
            Some((path, lock))
        };
        Directory { locked: lock() }
    }

    /// Creates a record of this process, and locks it.
    pub(super) fn create_record(&self) -> io::Result<(PathBuf, Flock<File>)> {
        let (directory, _) = self.locked.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        let (seconds, nanos) = (now.tv_sec(), now.tv_nsec());
        let name = format!("{PREFIX}{}-{seconds}.{nanos:09}", process::id());
        let path = directory.join(name);
        let file = File::create_new(&path)?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| error)?;
        Ok((path, lock))
    }

    /// The records of other processes, with whether the process lives.
    pub(super) fn others(&self, own: Option<&Path>) -> Vec<(PathBuf, bool)> {
        let Some((directory, _)) = &self.locked else {
            return Vec::new();
        };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with(PREFIX)
        });
        let paths = named.map(|entry| entry.path());
        let others = paths.filter(|path| Some(path.as_path()) != own);
        others
            .map(|path| {
                let lives = is_locked(&path);
                (path, lives)
            })
            .collect()
    }
}

/// Locks a file; `None` if another process keeps it locked.
fn lock_within(mut file: File, patience: Duration) -> Option<Flock<File>> {
    let end = Instant::now() + patience;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((back, nix::Error::EWOULDBLOCK)) if Instant::now() < end => file = back,
            Err(_) => return None,
        }
        sleep(Duration::from_millis(5));
    }
}

fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let lock = Flock::lock(file, FlockArg::LockSharedNonblock);
    matches!(lock, Err((_, nix::Error::EWOULDBLOCK)))
}
