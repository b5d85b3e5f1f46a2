//! Restores settings changed by killed processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longwire_capture::state_file;

use super::directory::{Directory, remove, replace};
use super::entry::{Entry, parse, written};
use super::{Record, Restorer, append, own};
use crate::net::netns::{self, NamespaceId, NetNamespace};

/// Restores settings left by killed processes, in all accessible network namespaces.
/// Settings needed by another process are left to that process.
pub fn restore_leftovers() {
    let mut own = own();
    let directory = Directory::lock();
    restore_left(&directory, own.as_mut(), |_| false);
}

/// Like [`restore_leftovers`], with the directory locked. Returns whether any entries
/// must be kept.
pub(super) fn restore_left(
    directory: &Directory,
    mut own: Option<&mut Record>,
    is_kept: impl Fn(&Entry) -> bool,
) -> bool {
    let others = directory.others(own.as_deref().and_then(Record::path));
    let (living, left): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, lives)| *lives);
    if left.is_empty() {
        return false;
    }
    let living: Vec<(PathBuf, Vec<Entry>)> = living
        .into_iter()
        .map(|(path, _)| {
            let entries = entries_of(&path);
            (path, entries)
        })
        .collect();
    let here = NamespaceId::current();
    let mut kept = false;
    let mut places = None;
    for (path, _) in left {
        let mut entries = entries_of(&path);
        let count = entries.len();
        entries.retain(|entry| entry.undo.is_some());
        entries.retain(|entry| !hand_over(entry, own.as_deref_mut(), &living));
        let (ours, mut others): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| entry.namespace == here);
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

/// Transfers an entry to a process with a port on the same interface, which needs the
/// setting and restores it at its end. Returns whether one exists.
fn hand_over(entry: &Entry, own: Option<&mut Record>, living: &[(PathBuf, Vec<Entry>)]) -> bool {
    let is_user = |entries: &[Entry]| entries.iter().any(|other| other.is_of_port_of(entry));
    if let Some(own) = own
        && is_user(&own.entries())
    {
        own.add(entry.clone());
        return true;
    }
    let heir = living.iter().find(|(_, entries)| is_user(entries));
    heir.is_some_and(|(path, _)| append(path, std::slice::from_ref(entry)).is_ok())
}

/// Whether a record is so old that its remaining namespaces, without name or process,
/// will not reappear.
fn is_old(path: &Path) -> bool {
    const KEPT: Duration = Duration::from_secs(24 * 3600);
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > KEPT)
}

/// Restores a setting in another namespace. Returns whether it succeeded or the namespace
/// is a different one by now.
fn restore_there(entry: &Entry, places: &[(u64, PathBuf)]) -> bool {
    let found = places
        .iter()
        .find(|(inode, _)| *inode == entry.namespace.inode);
    let Some((_, path)) = found else { return false };
    let restored = NetNamespace::at(path).and_then(|namespace| {
        namespace.run(|| {
            // Inode numbers of namespaces are reused; cookies are not.
            if NamespaceId::current() == entry.namespace {
                restore_here(entry);
            }
        })
    });
    restored.is_ok()
}

/// Restores a setting in the calling thread's namespace. Fails if the device is gone, and
/// the setting with it.
fn restore_here(entry: &Entry) {
    if let Some(undo) = &entry.undo {
        Restorer::open(&entry.device).restore(&entry.device, undo);
    }
}
