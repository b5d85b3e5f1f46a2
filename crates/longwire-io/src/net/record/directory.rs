//! The directory of records, and the restoration of settings that killed processes changed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_capture::state_file;
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};

use super::{Entry, Record, Restorer, append, own, parse, written};
use crate::net::netns::{self, NamespaceId, NetNamespace};
use crate::run_directory;

/// Maximum wait for another process that is changing settings.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Name prefix of records.
const PREFIX: &str = "settings-";

/// Name prefix of a record's next version, followed by the record's name.
const NEXT: &str = "new-";

/// The locked directory of records. One process at a time changes or restores settings.
pub(super) struct Directory {
    /// `None` if there is no directory.
    locked: Option<(PathBuf, Flock<File>)>,
}

impl Directory {
    pub(super) fn lock() -> Directory {
        let lock = || -> Option<(PathBuf, Flock<File>)> {
            let path = run_directory::own()?;
            run_directory::create(&path).ok()?;
            // Other users' records are not trusted.
            if !run_directory::is_private(&path) {
                return None;
            }
            let lock = lock_within(File::open(&path).ok()?, TIMEOUT)?;
            Some((path, lock))
        };
        Directory { locked: lock() }
    }

    /// Creates and locks a record for this process.
    pub(super) fn create_record(&self) -> io::Result<(PathBuf, Flock<File>)> {
        let (directory, _) = self.locked.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        let (seconds, nanos) = (now.tv_sec(), now.tv_nsec());
        let name = format!("{PREFIX}{}-{seconds}.{nanos:09}", process::id());
        let path = directory.join(name);
        let lock = Flock::lock(File::create_new(&path)?, FlockArg::LockExclusiveNonblock);
        Ok((path, lock.map_err(|(_, error)| error)?))
    }

    /// Returns other processes' records, and whether each process is alive.
    pub(super) fn others(&self, own: Option<&Path>) -> Vec<(bool, PathBuf)> {
        let Some((directory, _)) = &self.locked else {
            return Vec::new();
        };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
        let paths = named.map(|entry| entry.path());
        let others = paths.filter(|path| Some(path.as_path()) != own);
        others.map(|path| (is_locked(&path), path)).collect()
    }
}

/// Replaces a record atomically: after a SIGKILL, the file has either the old or the new contents.
/// Returns the new file, which is locked before it is renamed, so that a living process's record
/// always appears locked.
pub(super) fn replace(path: &Path, contents: &str) -> io::Result<Flock<File>> {
    let next = next_version(path);
    let lock = Flock::lock(state_file::create(&next)?, FlockArg::LockExclusiveNonblock);
    let mut lock = lock.map_err(|(_, error)| error)?;
    lock.write_all(contents.as_bytes())?;
    fs::rename(next, path)?;
    Ok(lock)
}

/// Removes a record, and the leftovers of a process killed in [`replace`].
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let _ = fs::remove_file(next_version(path));
    fs::remove_file(path)
}

fn next_version(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{NEXT}{name}"))
}

/// Locks a file; `None` if another process still holds the lock at the timeout.
fn lock_within(mut file: File, timeout: Duration) -> Option<Flock<File>> {
    let end = Instant::now() + timeout;
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
    let Ok(file) = state_file::open(path) else {
        return false;
    };
    let lock = Flock::lock(file, FlockArg::LockSharedNonblock);
    matches!(lock, Err((_, nix::Error::EWOULDBLOCK)))
}

/// Restores settings left by killed processes in all accessible network namespaces. Settings that
/// another process still needs are handed over to it.
pub fn restore_leftovers() {
    let mut own = own();
    restore_left(&Directory::lock(), own.as_mut(), |_| false);
}

/// Like [`restore_leftovers`], with the directory locked. Does not restore entries of the calling
/// thread's namespace for which `is_kept` is true; returns whether there are any.
pub(super) fn restore_left(
    directory: &Directory,
    mut own: Option<&mut Record>,
    is_kept: impl Fn(&Entry) -> bool,
) -> bool {
    let others = directory.others(own.as_deref().and_then(Record::path));
    let (living, left): (Vec<_>, Vec<_>) = others.into_iter().partition(|(lives, _)| *lives);
    if left.is_empty() {
        return false;
    }
    let living: Vec<(Vec<Entry>, PathBuf)> = living
        .into_iter()
        .map(|(_, path)| (entries_of(&path), path))
        .collect();
    let here = NamespaceId::current();
    let mut kept = false;
    let mut places = None;
    for (_, path) in left {
        let mut entries = entries_of(&path);
        let count = entries.len();
        entries.retain(|entry| entry.undo.is_some());
        entries.retain(|entry| !hand_over(entry, own.as_deref_mut(), &living));
        let (ours, mut others): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| entry.owner.namespace == here);
        for entry in ours.iter().rev() {
            if is_kept(entry) {
                kept = true;
            } else {
                restore_here(entry)
            }
        }
        if !others.is_empty() {
            let places = places.get_or_insert_with(netns::visible);
            others.retain(|entry| !restore_there(entry, places));
        }
        let _ = if others.is_empty() || is_old(&path) {
            remove(&path)
        } else if others.len() < count {
            replace(&path, &written(&others)).map(drop)
        } else {
            Ok(())
        };
    }
    kept
}

fn entries_of(path: &Path) -> Vec<Entry> {
    parse(&state_file::read_text(path).unwrap_or_default())
}

/// Transfers an entry to a process that has a port on the same interface: that process needs the
/// setting and restores it when it ends. Returns whether the entry was transferred.
fn hand_over(entry: &Entry, own: Option<&mut Record>, living: &[(Vec<Entry>, PathBuf)]) -> bool {
    let is_user = |entries: &[Entry]| entries.iter().any(|other| other.owner == entry.owner);
    if let Some(own) = own
        && is_user(&own.entries())
    {
        own.add(entry.clone());
        return true;
    }
    let heir = living.iter().find(|(entries, _)| is_user(entries));
    heir.is_some_and(|(_, path)| append(path, std::slice::from_ref(entry)).is_ok())
}

/// Returns whether a record is so old that its remaining namespaces, which now have neither a name
/// nor a process, will not reappear.
fn is_old(path: &Path) -> bool {
    const KEPT: Duration = Duration::from_secs(24 * 3600);
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > KEPT)
}

/// Restores a setting in another namespace. Returns whether that succeeded or the inode now belongs
/// to a different namespace.
fn restore_there(entry: &Entry, places: &[(u64, PathBuf)]) -> bool {
    let found = places
        .iter()
        .find(|(inode, _)| *inode == entry.owner.namespace.inode);
    let Some((_, path)) = found else { return false };
    let restored = NetNamespace::at(path).and_then(|namespace| {
        namespace.run(|| {
            // Inode numbers are reused; cookies are not.
            if NamespaceId::current() == entry.owner.namespace {
                restore_here(entry);
            }
        })
    });
    restored.is_ok()
}

/// Restores a setting in the calling thread's namespace. A no-op if the device is gone, and the
/// setting with it.
fn restore_here(entry: &Entry) {
    if let Some(undo) = &entry.undo {
        Restorer::open(&entry.device).restore(&entry.device, undo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_replaced_as_a_whole_and_stays_locked() {
        let directory = std::env::temp_dir().join(format!("longwire-record-{}", process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("settings-1");
        let file = File::create_new(&path).expect("a file");
        let first = Flock::lock(file, FlockArg::LockExclusiveNonblock).expect("a lock");
        // Checking a lock must not block on a FIFO.
        let fifo = directory.join("settings-2");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        assert!(!is_locked(&fifo), "a FIFO is not waited for");
        fs::remove_file(&fifo).expect("it is removed");
        // A process that has the old version open would read a partial record if the file were
        // rewritten in place.
        let mut before = File::open(&path).expect("a file");
        fs::write(&path, "before\n").expect("it is written");
        // Leftovers of a process killed during a write.
        fs::write(next_version(&path), "half of a rec").expect("it is written");
        let second = replace(&path, "after\n").expect("it is replaced");
        drop(first);
        assert!(is_locked(&path), "to others the process is alive");
        assert_eq!(fs::read_to_string(&path).expect("a record"), "after\n");
        let old = io::read_to_string(&mut before).expect("the old version");
        assert_eq!(old, "before\n");
        assert!(!next_version(&path).exists());
        drop(second);
        assert!(!is_locked(&path));
        remove(&path).expect("it is removed");
        fs::remove_dir(&directory).expect("nothing is left in it");
    }
}
