//! The record of settings that ports changed on interfaces, in a file that outlives the
//! process.
//!
//! A killed process restores nothing. So each change is recorded before it is made, in
//! `settings-PID-…` in the [run directory](crate::run_directory), which the process
//! keeps locked (flock) while it lives. The next process that opens a port finds a
//! record that is not locked, and restores the settings in it, in their network
//! namespaces.
//!
//! Two ports of different processes may share an interface: a receiver next to a run.
//! The first to end must not restore settings that the other still needs; it transfers
//! its entries to the other's record. So the file, and not memory, holds what a port
//! has to restore at its end.

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
    /// A file, locked.
    File { path: PathBuf, lock: Flock<File> },
    /// Where no file can be created: changes of a killed process stay.
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
                // If this fails, the old version stays: more is restored than
                // necessary.
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

/// A port's part in the record of its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortRecord {
    namespace: NamespaceId,
    port: u32,
}

/// The transaction in which a port changes settings: other processes wait.
pub(crate) struct SettingsChange {
    record: PortRecord,
    own: MutexGuard<'static, Option<Record>>,
    _directory: Directory,
}

impl PortRecord {
    /// Begins to change settings for a port on an interface of the calling thread's
    /// namespace. Settings left by killed processes are restored first; but IPv6 of
    /// this interface stays off if `quiet`, and this port restores it: switched on, it
    /// would send at once.
    ///
    /// A port that changes nothing may still have to restore the changes of another
    /// process that ends before it: the process keeps the right to.
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

    /// Ends the port's part: passes its changes to `restore`, unless another process
    /// has a port on the interface, which then restores them.
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
            // Another port of this process is on the interface.
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
    /// Records a change; call it before making the change.
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
