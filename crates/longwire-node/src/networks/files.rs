//! The directory of a network: its topology, key and reports.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longwire_control::node::NetworkSpec;
use serde_json::Value;

use super::request::NetworkRequest;

/// The files of a network that a node runs.
#[derive(Clone, Debug)]
pub struct NetworkFiles {
    directory: PathBuf,
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

    /// Writes a network. The specification comes last: with it, a later node finds the rest.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(&self, request: &NetworkRequest) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        write(&self.topology(), request.text.as_bytes())?;
        match &request.spec.key {
            Some(key) => write(&self.key(), format!("{key}\n").as_bytes())?,
            None => remove(&self.key())?,
        }
        write(&self.spec(), &serde_json::to_vec_pretty(&request.spec)?)
    }

    /// Reads the specification.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn read(&self) -> io::Result<NetworkSpec> {
        Ok(serde_json::from_slice(&fs::read(self.spec())?)?)
    }

    /// Returns the report of the last run.
    pub(super) fn last_report(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.report()).ok()?).ok()
    }

    /// Returns the last message of the run.
    pub(super) fn last_message(&self) -> Option<String> {
        let text = fs::read(self.log()).ok()?;
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

/// Writes a file that only its owner may read. A reader sees it before or after.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let written = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&written)?.write_all(text)?;
    fs::rename(&written, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
