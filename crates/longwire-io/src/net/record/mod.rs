//! A record of the interface settings that ports change, in a file that outlives the process.
//!
//! A killed process restores nothing. So each change is recorded beforehand, in `settings-PID-…` in
//! the [run directory](crate::run_directory), locked (flock) while the process lives. The next
//! process to open a port restores the settings of unlocked records, in their network namespaces.
//!
//! Ports of different processes may share an interface, such as a receiver and a run. The first to
//! end must not restore settings that the other needs, so it transfers its entries to the other's
//! record. For this reason the file, not memory, holds a port's undo entries.

mod directory;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};

use longwire_capture::state_file;
use nix::fcntl::Flock;

use super::ethtool::Ethtool;
use super::link;
use super::netlink::Netlink;
use super::netns::NamespaceId;
use crate::rights;
use crate::sync::locked;
pub use directory::restore_leftovers;
use directory::{Directory, remove, replace, restore_left};

/// This process's record.
#[derive(Debug)]
enum Record {
    /// A locked file.
    File { path: PathBuf, lock: Flock<File> },
    /// No file: the changes of a killed process remain.
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
                // On failure, the old version remains, which restores more than necessary.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortRecord {
    namespace: NamespaceId,
    port: u32,
}

/// A transaction in which a port changes settings while other processes wait.
pub(crate) struct SettingsChange {
    record: PortRecord,
    own: MutexGuard<'static, Option<Record>>,
    _directory: Directory,
}

impl PortRecord {
    /// Begins a settings change for a port on an interface in the calling thread's namespace. First
    /// restores the settings of killed processes. With `quiet`, IPv6 on this interface stays off
    /// until this port restores it, because the kernel sends as soon as IPv6 is enabled.
    ///
    /// A port that changed nothing may still have to restore the settings of a process that ends
    /// first, so the process keeps the necessary rights.
    pub(crate) fn begin(port: u32, device: &str, quiet: bool) -> SettingsChange {
        rights::will_restore();
        let mut own = own();
        let directory = Directory::lock();
        let record = PortRecord {
            namespace: NamespaceId::current(),
            port,
        };
        let is_kept = |entry: &Entry| {
            quiet
                && entry.owner == record
                && entry.device == device
                && entry.undo == Some(Undo::Ipv6)
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
        changing
    }

    /// Ends the port's part: restores its changes, unless they are transferred to another process
    /// with a port on the interface.
    fn end(self, restorer: &mut Restorer) {
        let mut own = own();
        let directory = Directory::lock();
        let Some(record) = own.as_mut() else { return };
        let (mine, rest): (Vec<Entry>, Vec<Entry>) = record
            .entries()
            .into_iter()
            .partition(|entry| entry.owner == self);
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
            .find(|(lives, path)| {
                let text = state_file::read_text(path).unwrap_or_default();
                *lives && parse(&text).iter().any(|entry| entry.owner == self)
            });
        if heir.is_none_or(|(_, path)| append(&path, &mine).is_err()) {
            for entry in mine.iter().rev() {
                if let Some(undo) = &entry.undo {
                    restorer.restore(&entry.device, undo);
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
}

fn own() -> MutexGuard<'static, Option<Record>> {
    locked(&OWN)
}

impl SettingsChange {
    /// Records a change. Call it before the change.
    pub(crate) fn note(&mut self, device: &str, undo: Undo) {
        self.add(device, Some(undo));
    }

    /// Ends the transaction. The restorer is opened now, while the process has the rights.
    pub(crate) fn end(self, device: &str) -> ChangedSettings {
        ChangedSettings {
            record: self.record,
            restorer: Restorer::open(device),
        }
    }

    fn add(&mut self, device: &str, undo: Option<Undo>) {
        let entry = Entry {
            owner: self.record,
            device: device.to_owned(),
            undo,
        };
        if let Some(record) = self.own.as_mut() {
            record.add(entry);
        }
    }
}

/// The settings that a port has changed. Drop restores them.
#[derive(Debug)]
pub(crate) struct ChangedSettings {
    record: PortRecord,
    restorer: Restorer,
}

impl Drop for ChangedSettings {
    fn drop(&mut self) {
        self.record.end(&mut self.restorer);
    }
}

/// An action that restores a device's setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    /// Enable IPv6.
    Ipv6,
    /// Enable a feature, by the kernel's name.
    Feature(String),
    /// Set the transmit queue length in packets.
    QueueLen(i32),
    /// Take the device down.
    Down,
}

/// A line in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The port that made the change, with its namespace.
    pub(super) owner: PortRecord,
    /// The changed device: the interface or its peer.
    pub(super) device: String,
    /// `None` for an entry that only records a port's existence.
    pub(super) undo: Option<Undo>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortRecord {
            namespace: NamespaceId { cookie, inode },
            port,
        } = self.owner;
        write!(f, "{cookie} {inode} {port} {} ", self.device)?;
        match &self.undo {
            None => write!(f, "used"),
            Some(Undo::Ipv6) => write!(f, "ipv6"),
            Some(Undo::Feature(name)) => write!(f, "feature {name}"),
            Some(Undo::QueueLen(places)) => write!(f, "queue-len {places}"),
            Some(Undo::Down) => write!(f, "down"),
        }
    }
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(line: &str) -> Result<Entry, ()> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or(());
        let number = |word: &str| word.parse::<u64>().map_err(drop);
        let (cookie, inode) = (number(word()?)?, number(word()?)?);
        let (namespace, port) = (
            NamespaceId { cookie, inode },
            word()?.parse().map_err(drop)?,
        );
        Ok(Entry {
            owner: PortRecord { namespace, port },
            device: word()?.to_owned(),
            undo: match word()? {
                "used" => None,
                "ipv6" => Some(Undo::Ipv6),
                "feature" => Some(Undo::Feature(word()?.to_owned())),
                "queue-len" => Some(Undo::QueueLen(word()?.parse().map_err(drop)?)),
                "down" => Some(Undo::Down),
                _ => return Err(()),
            },
        })
    }
}

/// Parses a record's entries; skips invalid lines.
pub(super) fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Formats entries as a record.
pub(super) fn written(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{entry}\n")).collect()
}

/// Restores device settings in the opening thread's network namespace, whichever thread uses it.
/// Restores changes by all kinds of ports, because a port may have to restore another kind's
/// changes.
#[derive(Debug)]
pub(crate) struct Restorer {
    /// The device whose IPv6 can be enabled.
    device: String,
    ipv6: Option<File>,
    ethtool: Option<Ethtool>,
    netlink: Option<Netlink>,
}

impl Restorer {
    /// Opens the means to restore settings of the interface `device` and its peer, in the calling
    /// thread's namespace. Settings whose file or socket cannot be opened are not restored.
    pub(crate) fn open(device: &str) -> Restorer {
        let ipv6 = if device.contains('/') {
            None
        } else {
            OpenOptions::new()
                .write(true)
                .open(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"))
                .ok()
        };
        Restorer {
            device: device.to_owned(),
            ipv6,
            ethtool: Ethtool::open().ok(),
            netlink: Netlink::route().ok(),
        }
    }

    /// Restores a setting. A no-op if the device is gone, and the setting with it.
    pub(crate) fn restore(&mut self, device: &str, undo: &Undo) {
        match undo {
            Undo::Ipv6 => {
                if let Some(file) = self.ipv6.as_ref().filter(|_| device == self.device) {
                    let _ = file.write_at(b"0", 0);
                }
            }
            Undo::Feature(feature) => {
                if let Some(ethtool) = &self.ethtool {
                    let on = std::iter::once((feature.as_str(), true));
                    let _ = ethtool.set_features(device, on);
                }
            }
            Undo::QueueLen(places) => {
                if let Some(netlink) = &mut self.netlink {
                    let _ = link::set_tx_queue_len(netlink, device, places.cast_unsigned());
                }
            }
            Undo::Down => {
                if let Some(netlink) = &mut self.netlink {
                    let _ = link::set_up_by(netlink, device, false);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back() {
        let namespace = NamespaceId {
            cookie: 7,
            inode: 4_026_531_840,
        };
        let entry = |undo| Entry {
            owner: PortRecord { namespace, port: 3 },
            device: "eth0".to_owned(),
            undo,
        };
        for undo in [
            None,
            Some(Undo::Ipv6),
            Some(Undo::Feature("rx-lro".to_owned())),
            Some(Undo::QueueLen(500)),
            Some(Undo::Down),
        ] {
            let entry = entry(undo);
            assert_eq!(parse(&written(std::slice::from_ref(&entry))), [entry]);
        }
        assert_eq!(parse("1 2 3 eth0 ipv7\nnonsense\n1 2 3"), []);
    }
}
