//! State files of this program.
//!
//! Other programs may be able to write to their directories, so only regular files of bounded size
//! are read. Symbolic links are not followed, and FIFOs, sockets and devices do not block. Writes
//! are atomic.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::whole_file::{TEMPORARY, TemporaryFile};

/// Maximum file size in bytes.
pub const SIZE_MAX: u64 = 256 << 20;

/// Mode of a file that only its owner may read and write.
pub const PRIVATE: u32 = 0o600;

/// Opens a file for reading.
///
/// # Errors
/// The kernel's error; `InvalidInput` if it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked before opening, because opening a device has side effects.
    check(&fs::symlink_metadata(path)?)?;
    let file = options().read(true).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a file.
///
/// # Errors
/// The errors of [`open`]; `FileTooLarge` above [`SIZE_MAX`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Reads a text file.
///
/// # Errors
/// The errors of [`read`]; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Reads the last `most` bytes of a file.
///
/// # Errors
/// The errors of [`open`].
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (open(path)?, Vec::new());
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file for locking, creating it if it is missing.
///
/// # Errors
/// The errors of [`open`].
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = options();
    let options = options.read(true).write(true).create(true);
    let file = options.mode(PRIVATE).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Creates an empty file that only its owner can read, replacing any existing file.
///
/// # Errors
/// If the file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    options.mode(PRIVATE).open(path)
}

/// Writes a file that only its owner can read. Readers see either the old or the new content, even
/// after a kill or a system crash.
///
/// # Errors
/// If the file cannot be written; the old content is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    StagedFile::new(path, bytes, PRIVATE)?.commit()
}

/// A file that is on disk under a temporary name. Dropping it removes the file.
pub struct StagedFile(TemporaryFile);

impl StagedFile {
    /// Writes a file next to its final path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<StagedFile> {
        let mut temporary = TemporaryFile::create(path, mode)?;
        temporary.file.write_all(bytes)?;
        temporary.file.sync_all()?;
        Ok(StagedFile(temporary))
    }

    /// Renames the file to its final name, replacing any existing file.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn commit(self) -> io::Result<()> {
        let directory = match self.0.target.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        self.0.persist()?;
        File::open(directory)?.sync_all()
    }

    /// Gives the file its final name, which must be unused.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken.
    pub fn commit_new(self) -> io::Result<()> {
        fs::hard_link(&self.0.path, &self.0.target)
    }
}

/// Removes the [`StagedFile`]s of killed processes. Only for the single writer of the directory.
pub fn sweep(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let left = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with('.') && name.ends_with(TEMPORARY)
    });
    let left: Vec<PathBuf> = left.collect();
    left.iter().for_each(|path| drop(fs::remove_file(path)));
}

/// Returns options for opening files without blocking or following symbolic links.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY);
    options
}

fn check(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use longwire_testbed::support::Folder;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    use crate::whole_file::tests::names_in;

    /// Asserts that other kinds of files neither block nor are read.
    #[test]
    fn only_regular_files_are_read() {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").expect("written");
        mkfifo(&at("fifo"), Mode::S_IRWXU).expect("a FIFO");
        symlink("file", at("link")).expect("a link");
        symlink("/dev/zero", at("device")).expect("a link");
        fs::create_dir(at("directory")).expect("made");
        let _socket = UnixListener::bind(at("socket")).expect("a socket");
        for name in ["fifo", "link", "device", "directory", "socket"] {
            assert!(read(&at(name)).is_err(), "{name}");
            assert!(read_end(&at(name), 10).is_err(), "{name}");
            assert!(open_lock(&at(name)).is_err(), "{name}");
        }
        assert!(read(Path::new("/dev/zero")).is_err());
        assert_eq!(read_text(&at("file")).expect("read"), "text");
        assert_eq!(read_end(&at("file"), 3).expect("read"), b"ext");
        // Writing replaces them with a regular file.
        for name in ["fifo", "link"] {
            write(&at(name), b"new").expect("written");
            assert_eq!(read(&at(name)).expect("read"), b"new");
            create(&at(name)).expect("created");
            assert_eq!(read(&at(name)).expect("read"), b"");
        }
        assert_eq!(read_text(&at("file")).expect("read"), "text");
    }

    #[test]
    fn sizes_are_bounded() {
        let folder = Folder::new();
        let path = folder.path().join("a.json");
        let file = File::create(&path).expect("created");
        file.set_len(SIZE_MAX + 1).expect("a hole");
        let error = read(&path).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        file.set_len(SIZE_MAX * 4).expect("a hole");
        assert_eq!(read_end(&path, 8).expect("read"), [0; 8]);
    }

    #[test]
    fn a_staged_file_appears_when_it_is_committed() {
        let folder = Folder::new();
        let path = folder.path().join("a.json");
        write(&path, b"old").expect("written");
        let staged = StagedFile::new(&path, b"new", PRIVATE).expect("written");
        assert_eq!(read(&path).expect("read"), b"old");
        staged.commit().expect("renamed");
        assert_eq!(read(&path).expect("read"), b"new");
        let mode = fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, PRIVATE);
        drop(StagedFile::new(&path, b"dropped", PRIVATE).expect("written"));
        let twice = StagedFile::new(&path, b"twice", PRIVATE).expect("written");
        let error = twice.commit_new().expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read(&path).expect("read"), b"new");
        assert_eq!(names_in(&folder), ["a.json"]);
        // Simulates a kill.
        std::mem::forget(StagedFile::new(&path, b"left", PRIVATE).expect("written"));
        assert_eq!(names_in(&folder).len(), 2);
        sweep(folder.path());
        assert_eq!(names_in(&folder), ["a.json"]);
    }
}
