//! The directory of attachments: a file of JSON for each, so that a node that starts again
//! finds them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longwire_control::node::AttachmentSpec;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::NodeError;

/// An attachment in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub name: String,
    pub spec: AttachmentSpec,
    #[serde(flatten)]
    pub known: Known,
}

/// Facts about an attachment that are found when it is attached for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Start of the process of a PID, in clock ticks since the start of the system: a later
    /// process with that number is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Its number among the attachments of its priority at its interface, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u16>,
}

/// The directory. It is locked while this exists.
pub(crate) struct Store {
    directory: PathBuf,
    _lock: Flock<File>,
}

impl Store {
    /// Opens the directory, and creates it if it is missing.
    ///
    /// # Errors
    /// If it cannot be used, or another node uses it.
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
        let lock = File::create(directory.join("lock")).map_err(failed)?;
        match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Store {
                directory: directory.to_owned(),
                _lock: lock,
            }),
            Err((_, Errno::EWOULDBLOCK)) => Err(NodeError::InUse {
                path: directory.to_owned(),
            }),
            Err((_, error)) => Err(failed(error.into())),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Writes an attachment. A reader sees the file before or after, also if this process
    /// ends meanwhile.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, stored: &Stored) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(stored)?;
        // No name begins with a dot.
        let written = self.directory.join(format!(".{}", stored.name));
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&written)?.write_all(&text)?;
        fs::rename(&written, self.path(&stored.name))
    }

    /// Removes an attachment.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Reads all attachments. Names and reasons of files that are none come with them.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn read(&self) -> io::Result<(Vec<Stored>, Vec<String>)> {
        let (mut found, mut strange) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let read = fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
            match read {
                Ok(stored) => found.push(stored),
                Err(error) => strange.push(format!("{}: {error}", path.display())),
            }
        }
        Ok((found, strange))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attachments_are_found_again_and_strange_files_named() {
        let directory = std::env::temp_dir().join(format!("lw-store-{}", std::process::id()));
        let store = Store::open(&directory).expect("a directory");
        assert!(matches!(
            Store::open(&directory),
            Err(NodeError::InUse { .. })
        ));
        let spec = json!({ "target": { "pid": 7 }, "link": { "delay": "1ms" } });
        let stored = Stored {
            name: "web".to_owned(),
            spec: serde_json::from_value(spec).expect("an attachment"),
            known: Known {
                started: Some(3),
                serial: None,
            },
        };
        store.write(&stored).expect("written");
        fs::write(directory.join("other.json"), "{").expect("written");
        drop(store);
        let store = Store::open(&directory).expect("free again");
        let (found, strange) = store.read().expect("read");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].name, &found[0].spec, found[0].known),
            (&stored.name, &stored.spec, stored.known)
        );
        assert_eq!(strange.len(), 1, "{strange:?}");
        store.remove("web").expect("removed");
        store.remove("web").expect("none is no error");
        assert!(store.read().expect("read").0.is_empty());
        fs::remove_dir_all(&directory).expect("removed");
    }
}
