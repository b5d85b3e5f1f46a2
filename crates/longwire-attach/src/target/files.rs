//! Files in a state directory. Other users may have written them, so they are read with size limits
//! and without following symbolic links.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use serde::de::DeserializeOwned;

use super::name;

/// Maximum size in bytes of a container's configuration, which usually has 10 to 60 KB.
const JSON_BYTES_MAX: u64 = 8 << 20;

/// Maximum size in bytes of a file that contains one number.
const NUMBER_BYTES_MAX: u64 = 32;

/// Maximum number of directory entries.
const ENTRIES_MAX: usize = 1 << 16;

/// A directory. Its files are opened by relative paths, which cannot leave it through `..` or a
/// symbolic link.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    file: OwnedFd,
}

impl Directory {
    /// Opens a directory. The path to it may contain symbolic links.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let file = open(path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Directory { path, file })
    }

    /// Opens a subdirectory.
    pub fn inner(&self, path: &str) -> io::Result<Directory> {
        let file = self.open_file(path, OFlag::O_DIRECTORY)?;
        let path = self.path.join(path);
        Ok(Directory { path, file })
    }

    /// Returns the names of all entries that are valid IDs or namespaces.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?.take(ENTRIES_MAX).flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter(|name| name::check(name).is_ok()).collect())
    }

    /// Reads and parses a JSON file.
    pub fn json<T: DeserializeOwned>(&self, path: &str) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.read(path, JSON_BYTES_MAX)?)?)
    }

    /// Reads a file that contains one decimal number.
    pub fn number(&self, path: &str) -> io::Result<u32> {
        let bytes = self.read(path, NUMBER_BYTES_MAX)?;
        let number = str::from_utf8(&bytes).unwrap_or_default().trim().parse();
        number.map_err(|_| invalid("not a number"))
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        // Opening a FIFO must not block.
        let file = File::from(self.open_file(path, OFlag::O_NONBLOCK)?);
        if !file.metadata()?.is_file() {
            return Err(invalid("not a regular file"));
        }
        read_limited(file, bytes_max)
    }

    fn open_file(&self, path: &str, flags: OFlag) -> io::Result<OwnedFd> {
        let how = OpenHow::new()
            .flags(flags | OFlag::O_RDONLY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
        Ok(openat2(&self.file, path, how)?)
    }
}

/// Reads a file to its end. More than `bytes_max` bytes are an error.
pub fn read_limited(file: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(invalid(format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Returns the error for data in an unknown format.
pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
