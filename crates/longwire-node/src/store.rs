//! A directory with a JSON file per attachment, from which a node restores its attachments.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use longwire_capture::state_file;
use longwire_client::node::AttachmentSpec;
use longwire_io::attach::{AttachClaim, AttachError, Pins};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::NodeError;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredAttachment {
    pub name: String,
    pub spec: AttachmentSpec,
    #[serde(flatten)]
    pub facts: Facts,
}

/// Facts established when the link was first attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Start time of the target's process in clock ticks since boot, to detect a reused PID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Claims by interface.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, StoredClaim>,
}

/// An attachment's claim at an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClaim {
    serial: u16,
    /// Name of the claim's pins in the BPF file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pins: Option<String>,
}

impl From<&AttachClaim> for StoredClaim {
    fn from(claim: &AttachClaim) -> StoredClaim {
        StoredClaim {
            serial: claim.serial,
            pins: claim.pins.as_ref().map(|pins| pins.name().to_owned()),
        }
    }
}

impl StoredClaim {
    fn pins(&self) -> Option<Pins> {
        Pins::named(self.pins.as_deref()?)
    }
}

impl Facts {
    /// Returns the facts of a process and of its claims at these interfaces.
    pub fn new(
        started: Option<u64>,
        interfaces: &[String],
        claims: impl Iterator<Item = AttachClaim>,
    ) -> Facts {
        let claims = interfaces.iter().cloned().zip(claims);
        let claims = claims.map(|(interface, claim)| (interface, StoredClaim::from(&claim)));
        Facts {
            started,
            claims: claims.collect(),
        }
    }

    /// Returns the claims, for a later process.
    pub fn claims(&self) -> BTreeMap<String, AttachClaim> {
        let claim = |stored: &StoredClaim| AttachClaim {
            serial: stored.serial,
            pins: stored.pins(),
        };
        let claims = self.claims.iter();
        claims
            .map(|(interface, stored)| (interface.clone(), claim(stored)))
            .collect()
    }

    /// Returns whether an earlier process has left an interface closed.
    pub fn are_closed(&self) -> bool {
        let mut pins = self.claims.values().filter_map(StoredClaim::pins);
        pins.any(|pins| pins.are_attached())
    }

    /// Opens interfaces that an earlier process left closed, except for these.
    ///
    /// # Errors
    /// If the BPF file system is not mounted, or permission is denied.
    pub fn open_others(&self, interfaces: &[String]) -> Result<(), AttachError> {
        let claims = self.claims.iter();
        let others = claims.filter(|(interface, _)| !interfaces.contains(interface));
        let mut pins = others.filter_map(|(_, stored)| stored.pins());
        pins.try_for_each(|pins| pins.remove())
    }
}

/// The directory, locked by this process.
pub(crate) struct Store {
    directory: PathBuf,
    _lock: Flock<File>,
}

impl Store {
    /// Opens the directory, creating it if missing.
    ///
    /// # Errors
    /// If it is unusable, or another node uses it.
    pub fn open(directory: &Path) -> Result<Store, NodeError> {
        let failed = |source| NodeError::Directory {
            path: directory.to_owned(),
            source,
        };
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed)?;
        let lock = state_file::open_lock(&directory.join("lock")).map_err(failed)?;
        match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                state_file::sweep(directory);
                Ok(Store {
                    directory: directory.to_owned(),
                    _lock: lock,
                })
            }
            Err((_, Errno::EWOULDBLOCK)) => Err(NodeError::InUse {
                path: directory.to_owned(),
            }),
            Err((_, error)) => Err(failed(error.into())),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Writes an attachment.
    ///
    /// # Errors
    /// If it cannot be written; the file is then unchanged.
    pub fn write(&self, stored: &StoredAttachment) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(stored)?;
        state_file::write(&self.path(&stored.name), &text)
    }

    /// Removes an attachment if it exists.
    ///
    /// # Errors
    /// If it exists but cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove_file(&self.path(name))
    }

    /// Reads an attachment; `None` if it does not exist or is invalid.
    pub fn read_one(&self, name: &str) -> Option<StoredAttachment> {
        read(&self.path(name)).ok()
    }

    /// Reads all attachments. Also returns the names of invalid files, with the reasons.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn read(&self) -> io::Result<(Vec<StoredAttachment>, Vec<String>)> {
        let (mut found, mut strange) = (Vec::new(), Vec::new());
        for path in files(&self.directory)? {
            match read(&path) {
                Ok(stored) => found.push(stored),
                Err(error) => strange.push(format!("{}: {error}", path.display())),
            }
        }
        Ok((found, strange))
    }
}

/// Returns the attachment files in a directory.
///
/// # Errors
/// If it cannot be read.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    Ok(paths)
}

/// Reads and parses a JSON file.
///
/// # Errors
/// See [`state_file::read`]; also if the contents are invalid.
pub fn read_file<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&state_file::read(path)?)?)
}

/// Removes a file, if it exists.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Reads an attachment, whose name must match the file name.
fn read(path: &Path) -> io::Result<StoredAttachment> {
    let stored: StoredAttachment = read_file(path)?;
    if path.file_name() != Some(OsStr::new(&format!("{}.json", stored.name))) {
        let reason = format!("contains the name '{}'", stored.name);
        return Err(io::Error::other(reason));
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Folder;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use serde_json::json;

    use super::*;

    #[test]
    fn attachments_are_restored_and_invalid_files_reported() {
        let folder = Folder::new();
        let directory = folder.path();
        let store = Store::open(directory).expect("a directory");
        let second = Store::open(directory);
        assert!(matches!(second, Err(NodeError::InUse { .. })));
        let spec = json!({ "target": { "pid": 7 }, "link": { "delay": "1ms" } });
        let stored = StoredAttachment {
            name: "web".to_owned(),
            spec: serde_json::from_value(spec).expect("an attachment"),
            facts: Facts {
                started: Some(3),
                claims: BTreeMap::new(),
            },
        };
        store.write(&stored).expect("written");
        fs::write(directory.join("other.json"), "{").expect("written");
        let text = fs::read_to_string(directory.join("web.json")).expect("read");
        let text = text.replace("\"web\"", "\"../../web\"");
        fs::write(directory.join("renamed.json"), text).expect("written");
        fs::create_dir(directory.join("directory.json")).expect("made");
        mkfifo(&directory.join("fifo.json"), Mode::S_IRWXU).expect("a FIFO");
        assert!(store.read_one("fifo").is_none());
        drop(store);
        let store = Store::open(directory).expect("free again");
        let (found, strange) = store.read().expect("read");
        assert_eq!(found.len(), 1);
        let parts = |it: &StoredAttachment| (it.name.clone(), it.spec.clone(), it.facts.clone());
        assert_eq!(parts(&found[0]), parts(&stored));
        assert_eq!(strange.len(), 4, "{strange:?}");
        store.remove("web").expect("removed");
        store.remove("web").expect("none is no error");
        assert!(store.read().expect("read").0.is_empty());
    }
}
