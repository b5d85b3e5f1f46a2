//! The directory of a network: its topology, key and reports.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use longwire_capture::state_file::{self, PRIVATE, StagedFile};
use longwire_control::node::NetworkSpec;
use serde_json::Value;

use super::request::NetworkRequest;

/// The files of a network that a node runs.
#[derive(Clone, Debug)]
pub struct NetworkFiles {
    directory: PathBuf,
}

/// The end of a run's messages that its reason is searched in, in bytes.
const MESSAGES_MAX: u64 = 64 << 10;

/// The files of a network that are on the disk, and not yet in place of those before.
pub(super) struct StagedNetwork<'a> {
    files: &'a NetworkFiles,
    topology: StagedFile,
    key: Option<StagedFile>,
    spec: StagedFile,
}

impl StagedNetwork<'_> {
    /// Puts them in place. The specification comes last: a later node finds the network by
    /// it, and makes the others follow.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn commit(self) -> io::Result<()> {
        self.topology.commit()?;
        match self.key {
            Some(key) => key.commit()?,
            None => remove(&self.files.key())?,
        }
        self.spec.commit()
    }
}

impl NetworkFiles {
    pub(super) fn new(directory: PathBuf) -> NetworkFiles {
        NetworkFiles { directory }
    }

    /// Returns their directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the topology.
    pub fn topology(&self) -> PathBuf {
        self.directory.join("network.toml")
    }

    /// Returns the key of the hosts; the file exists if one was sent.
    pub fn key(&self) -> PathBuf {
        self.directory.join("network.key")
    }

    /// Returns the control socket of the run.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control.sock")
    }

    /// Returns the report of the run, which it writes when it ends.
    pub fn report(&self) -> PathBuf {
        self.directory.join("report.json")
    }

    /// Returns the messages of the run.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn spec(&self) -> PathBuf {
        self.directory.join("spec.json")
    }

    /// Writes a network next to the one before, which nothing happens to.
    ///
    /// # Errors
    /// If a file cannot be written; then none is left.
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
            // It is empty if the network is new.
            let _ = fs::remove_dir(&self.directory);
        })
    }

    /// Makes the topology and the key follow from the specification, which they may not if
    /// an earlier node was killed in between.
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
            None => remove(&self.key()),
        }
    }

    /// Creates the file of a run's messages.
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

    /// Removes all.
    ///
    /// # Errors
    /// If they are there and cannot be removed.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// Returns the text of the key's file.
fn key_text(request: &NetworkRequest) -> Option<Vec<u8>> {
    let key = request.spec.key.as_ref()?;
    Some(format!("{key}\n").into_bytes())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
