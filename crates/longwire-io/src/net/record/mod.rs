//! A record of interface settings changed by ports, in a file that outlives the process.
//!
//! A killed process restores nothing. So each change is recorded beforehand, in
//! `settings-PID-…` in the [run directory](crate::run_directory), locked (flock) while
//! the process lives. The next process to open a port restores the settings of unlocked
//! records, in their network namespaces.
//!
//! Ports of different processes may share an interface, such as a receiver and a run. The
//! first to end must not restore settings that the other needs; it transfers its entries
//! to the other's record. So a port's restorations are kept in the file, not in memory.

mod directory;
mod entry;
mod leftovers;
mod restorer;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use longwire_capture::state_file;
use nix::fcntl::Flock;

use self::directory::{Directory, remove, replace};
pub(crate) use self::entry::Undo;
use self::entry::{Entry, parse, written};
use self::leftovers::restore_left;
pub use self::leftovers::restore_leftovers;
pub(crate) use self::restorer::Restorer;
use super::netns::NamespaceId;
use crate::rights;

/// This process's record.
#[derive(Debug)]
enum Record {
    /// A locked file.
    File { path: PathBuf, lock: Flock<File> },
    /// Without a file, a killed process's changes stay.
    Memory(Vec<Entry>),
}

static OWN: Mutex<Option<Record>> = Mutex::new(None);

impl Record {
    fn create(directory: &Directory) -> Record {
        match directory.create_record() {
            Ok((path, lock)) => Record::File { path, lock },
            Err(_) => Record::Memory(Vec::new()),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Record::File { path, .. } => Some(path),
            Record::Memory(_) => None,
        }
    }

    fn entries(&self) -> Vec<Entry> {
        match self {
            Record::File { path, .. } => parse(&state_file::read_text(path).unwrap_or_default()),
            Record::Memory(entries) => entries.clone(),
        }
    }

    fn add(&mut self, entry: Entry) {
        match self {
            Record::File { path, .. } => {
                let _ = append(path, &[entry]);
            }
            Record::Memory(entries) => entries.push(entry),
        }
    }

    fn set(&mut self, entries: Vec<Entry>) {
        match self {
            Record::File { path, lock } => {
                // On failure the old version stays, which restores more than necessary.
                if let Ok(next) = replace(path, &written(&entries)) {
                    *lock = next;
                }
            }
            Record::Memory(own) => *own = entries,
        }
    }
}

fn append(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(written(entries).as_bytes())
}

/// A port's part of its process's record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortRecord {
    namespace: NamespaceId,
    port: u32,
}

/// A transaction in which a port changes settings; other processes wait.
pub(crate) struct SettingsChange {
    record: PortRecord,
    own: MutexGuard<'static, Option<Record>>,
    _directory: Directory,
}

impl PortRecord {
    /// Begins a change of settings for a port on an interface of the calling thread's
    /// namespace. First restores settings of killed processes, except that with `quiet`
    /// this interface's IPv6 stays off, and this port restores it: IPv6 would send as
    /// soon as it is enabled.
    ///
    /// Even a port without changes may have to restore those of a process that ends
    /// before it, so the process keeps the rights for that.
    pub(crate) fn begin(port: u32, device: &str, quiet: bool) -> (PortRecord, SettingsChange) {
        rights::will_restore();
        let mut own = own();
        let directory = Directory::lock();
        let record = PortRecord {
            namespace: NamespaceId::current(),
            port,
        };
        let is_kept = |entry: &Entry| {
            quiet && record.is_of(entry) && entry.device == device && entry.undo == Some(Undo::Ipv6)
        };
        let kept = restore_left(&directory, own.as_mut(), is_kept);
        own.get_or_insert_with(|| Record::create(&directory));
        let mut changing = SettingsChange {
            record,
            own,
            _directory: directory,
        };
        changing.add(device, None);
        if kept {
            changing.note(device, Undo::Ipv6);
        }
        (record, changing)
    }

    /// Ends the port's part: passes its changes to `restore`, unless another process with
    /// a port on the interface takes them over.
    pub(crate) fn end(self, mut restore: impl FnMut(&str, &Undo)) {
        let mut own = own();
        let directory = Directory::lock();
        let Some(record) = own.as_mut() else { return };
        let (mine, rest): (Vec<Entry>, Vec<Entry>) = record
            .entries()
            .into_iter()
            .partition(|entry| self.is_of(entry));
        let (uses, mine): (Vec<Entry>, Vec<Entry>) =
            mine.into_iter().partition(|entry| entry.undo.is_none());
        if uses.len() > 1 {
            // This process has another port on the interface.
            let others = uses.into_iter().skip(1);
            return record.set(rest.into_iter().chain(mine).chain(others).collect());
        }
        let heir = directory
            .others(record.path())
            .into_iter()
            .find(|(path, lives)| {
                let text = state_file::read_text(path).unwrap_or_default();
                *lives && parse(&text).iter().any(|entry| self.is_of(entry))
            });
        let handed = heir.is_some_and(|(path, _)| append(&path, &mine).is_ok());
        if !handed {
            for entry in mine.iter().rev() {
                if let Some(undo) = &entry.undo {
                    restore(&entry.device, undo);
                }
            }
        }
        if !rest.is_empty() {
            return record.set(rest);
        }
        if let Record::File { path, .. } = record {
            let _ = remove(path);
        }
        *own = None;
    }

    fn is_of(&self, entry: &Entry) -> bool {
        entry.namespace == self.namespace && entry.port == self.port
    }
}

fn own() -> MutexGuard<'static, Option<Record>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SettingsChange {
    /// Records a change; call it before the change.
    pub(crate) fn note(&mut self, device: &str, undo: Undo) {
        self.add(device, Some(undo));
    }

    fn add(&mut self, device: &str, undo: Option<Undo>) {
        let entry = Entry {
            namespace: self.record.namespace,
            port: self.record.port,
            device: device.to_owned(),
            undo,
        };
        if let Some(record) = self.own.as_mut() {
            record.add(entry);
        }
    }
}
