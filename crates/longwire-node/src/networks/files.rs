//! Directory of a network: its topology, key and reports.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use longwire_capture::state_file::{self, PRIVATE, StagedFile};
use longwire_client::node::NetworkSpec;
use serde_json::Value;

use super::request::NetworkRequest;
use crate::store::remove_file;

/// Files of a network.
#[derive(Clone, Debug)]
pub struct NetworkFiles {
    directory: PathBuf,
}

/// Number of bytes at the end of a run's messages that are searched for an error.
const MESSAGES_MAX: u64 = 64 << 10;

/// Files of a network that have been written, but do not yet replace the previous ones.
pub(super) struct StagedNetwork<'a> {
    files: &'a NetworkFiles,
    topology: StagedFile,
    key: Option<StagedFile>,
    spec: StagedFile,
}

impl StagedNetwork<'_> {
    /// Replaces the previous files, the specification last, because the next node restores the
    /// network and the other files from it.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn commit(self) -> io::Result<()> {
        self.topology.commit()?;
        match self.key {
            Some(key) => key.commit()?,
            None => remove_file(&self.files.key())?,
        }
        self.spec.commit()
    }
}

impl NetworkFiles {
    pub(super) fn new(directory: PathBuf) -> NetworkFiles {
        NetworkFiles { directory }
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of the topology.
    pub fn topology(&self) -> PathBuf {
        self.directory.join("network.toml")
    }

    /// Path of the hosts' key; exists if a key was sent.
    pub fn key(&self) -> PathBuf {
        self.directory.join("network.key")
    }

    /// Path of the run's control socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control.sock")
    }

    /// Path of the run's final report.
    pub fn report(&self) -> PathBuf {
        self.directory.join("report.json")
    }

    /// Path of the run's messages.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn spec(&self) -> PathBuf {
        self.directory.join("spec.json")
    }

    /// Writes a network's files next to the previous ones, which stay unchanged.
    ///
    /// # Errors
    /// If a file cannot be written; all new files are then removed.
    pub(super) fn stage(&self, request: &NetworkRequest) -> io::Result<StagedNetwork<'_>> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let stage = |path: &Path, text: &[u8]| StagedFile::new(path, text, PRIVATE);
        let staged = || {
            let spec = serde_json::to_vec_pretty(&request.spec)?;
            let key = key_text(request);
            Ok(StagedNetwork {
                files: self,
                topology: stage(&self.topology(), request.text.as_bytes())?,
                key: key.map(|key| stage(&self.key(), &key)).transpose()?,
                spec: stage(&self.spec(), &spec)?,
            })
        };
        staged().inspect_err(|_| {
            // Fails if the directory has files, because the network is not new.
            let _ = fs::remove_dir(&self.directory);
        })
    }

    /// Restores the topology and the key from the specification, because an earlier node may have
    /// been killed during a change.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn settle(&self, request: &NetworkRequest) -> io::Result<()> {
        let settle = |path: &Path, text: &[u8]| match state_file::read(path) {
            Ok(present) if present == text => Ok(()),
            _ => state_file::write(path, text),
        };
        settle(&self.topology(), request.text.as_bytes())?;
        match key_text(request) {
            Some(key) => settle(&self.key(), &key),
            None => remove_file(&self.key()),
        }
    }

    /// Creates the file for a run's messages.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn create_log(&self) -> io::Result<File> {
        state_file::create(&self.log())
    }

    /// Reads the specification.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn read(&self) -> io::Result<NetworkSpec> {
        Ok(serde_json::from_slice(&state_file::read(&self.spec())?)?)
    }

    /// Returns the report of the last run.
    pub(super) fn last_report(&self) -> Option<Value> {
        serde_json::from_slice(&state_file::read(&self.report()).ok()?).ok()
    }

    /// Returns the last message of the run.
    pub(super) fn last_message(&self) -> Option<String> {
        let text = state_file::read_end(&self.log(), MESSAGES_MAX).ok()?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().map(str::trim);
        lines.rfind(|line| !line.is_empty()).map(str::to_owned)
    }

    /// Removes all files.
    ///
    /// # Errors
    /// If they exist and cannot be removed.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// Returns the contents of the key file.
fn key_text(request: &NetworkRequest) -> Option<Vec<u8>> {
    let key = request.spec.key.as_ref()?;
    Some(format!("{key}\n").into_bytes())
}
