//! The key that all hosts of a network share.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Key length in bytes.
const LEN: usize = 32;

/// Maximum size of a key file in bytes.
const FILE_MAX: u64 = 4096;

/// A shared key. Any machine that has it can join the network.
#[derive(Clone)]
pub struct Key([u8; LEN]);

/// Failure to read or write a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The key file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The file is not regular or is accessible to other users.
    #[error("{}: {reason}", path.display())]
    Unsafe {
        /// The key file.
        path: PathBuf,
        /// The reason and the remedy.
        reason: String,
    },
    /// The file contains no key.
    #[error("{}: no key; expected 64 hexadecimal digits, as written by `longwire key`", .0.display())]
    Malformed(PathBuf),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(…)")
    }
}

impl Key {
    /// Creates a key from bytes.
    pub fn new(bytes: [u8; LEN]) -> Key {
        Key(bytes)
    }

    /// Generates a random key.
    ///
    /// # Errors
    /// The kernel provides no random bytes.
    pub fn generate() -> io::Result<Key> {
        let mut bytes = [0; LEN];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Key(bytes))
    }

    /// Reads a key: 64 hexadecimal digits on the first line that is not a comment (`#`).
    ///
    /// # Errors
    /// The file cannot be read, contains no key, or is accessible to other users.
    pub fn read(path: &Path) -> Result<Key, KeyError> {
        let failed = |error| KeyError::File {
            path: path.to_owned(),
            error,
        };
        let mut text = String::new();
        // Otherwise, opening a FIFO would block.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
        let file = options.open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let refuse = |reason| {
            let path = path.to_owned();
            Err(KeyError::Unsafe { path, reason })
        };
        if !metadata.is_file() {
            return refuse("the key must be in a regular file".to_owned());
        }
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return refuse(format!(
                "mode {mode:o} lets other users access the key; run `chmod 600`, \
                 and create a new key if this machine has other users"
            ));
        }
        file.take(FILE_MAX)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let key = lines.next().and_then(from_hex);
        key.ok_or_else(|| KeyError::Malformed(path.to_owned()))
    }

    /// Writes the key to a new file that only its owner can read.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |error| KeyError::File {
            path: path.to_owned(),
            error,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        writeln!(options.open(path).map_err(failed)?, "{}", self.to_hex()).map_err(failed)
    }

    /// Returns the key in the format of key files.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

fn from_hex(text: &str) -> Option<Key> {
    if text.len() != 2 * LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; LEN];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(Key(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_may_read_and_pipes_are_refused() {
        let folder = std::env::temp_dir().join(format!("longwire-key-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let (file, pipe) = (folder.join("key"), folder.join("pipe"));
        let key = Key::generate().expect("random bytes");
        key.write(&file).expect("it is written");
        assert_eq!(Key::read(&file).expect("a key").bytes(), key.bytes());
        for mode in [0o640, 0o604, 0o602] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
            let error = Key::read(&file).expect_err("refused").to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let error = Key::read(&pipe).expect_err("refused").to_string();
        assert!(error.contains("regular file"), "{error}");
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = Key::generate().expect("random bytes");
        let other = Key::generate().expect("random bytes");
        assert_ne!(key.to_hex(), other.to_hex());
        assert_eq!(from_hex(&key.to_hex()).expect("a key").bytes(), key.bytes());
        assert_eq!(format!("{key:?}"), "Key(…)");
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert!(from_hex(wrong).is_none(), "{wrong}");
        }
    }
}
