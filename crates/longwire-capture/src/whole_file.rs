//! Atomic file writes.
//!
//! The content is written to a temporary file next to the target, which is renamed to the target
//! once everything is on disk. After a full disk or a kill, the previous file is unchanged.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::open;

/// Writes a file atomically. Three kinds of files are written directly: special files (devices,
/// pipes), files in a directory in which no file can be created, and files whose owner cannot be
/// preserved.
///
/// # Errors
/// If the file cannot be written; a regular file is then unchanged.
pub fn write(path: &Path, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = Target::of(path)?;
    if target.is_special {
        return fill(open::to_write(path)?, &content).map(drop);
    }
    let temporary = match target.temporary() {
        Err(error) if target.is_there && is_denied(&error) => return overwrite(path, &content),
        temporary => temporary?,
    };
    let file = fill(temporary.file.try_clone()?, &content)?;
    file.sync_all()?;
    temporary.persist()
}

/// Checks, as far as possible without writing, that [`write()`] would succeed.
///
/// # Errors
/// The error that [`write()`] would return.
pub fn check(path: &Path) -> io::Result<()> {
    let target = Target::of(path)?;
    if target.is_special {
        return open::check(path);
    }
    match target.temporary() {
        Err(error) if target.is_there && is_denied(&error) => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        temporary => temporary.map(drop),
    }
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Writes the content and returns the file.
fn fill(file: File, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Writes a file in place, after producing the whole content.
fn overwrite(path: &Path, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = Vec::new();
    content(&mut bytes)?;
    fs::write(path, bytes)
}

/// Mode of a new file, before applying the process's umask.
const MODE: u32 = 0o666;

/// Suffix of temporary file names.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Maximum number of leftover temporary files that are skipped.
const LEFTOVERS_MAX: u32 = 100;

/// Location of a file to write.
struct Target {
    /// Path with symbolic links resolved, so that replacing the file keeps the links.
    path: PathBuf,
    is_there: bool,
    /// Whether the target is not a regular file.
    is_special: bool,
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        let (path, found) = match fs::metadata(path) {
            Ok(found) => (
                fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
                Some(found),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (end_of_links(path), None),
            Err(error) => return Err(error),
        };
        if found.as_ref().is_some_and(fs::Metadata::is_dir) || path.file_name().is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Target {
            is_there: found.is_some(),
            is_special: found.is_some_and(|found| !found.is_file()),
            path,
        })
    }

    /// Creates a file with the mode and the owner of the file it is to replace.
    fn temporary(&self) -> io::Result<TemporaryFile> {
        let temporary = TemporaryFile::create(&self.path, MODE)?;
        if self.is_there {
            let found = fs::metadata(&self.path)?;
            let own = temporary.file.metadata()?;
            temporary.file.set_permissions(found.permissions())?;
            if found.uid() != own.uid() {
                fchown(&temporary.file, Some(found.uid()), Some(found.gid()))?;
            } else if found.gid() != own.gid() {
                // Best effort: a different group does not justify writing in place.
                let _ = fchown(&temporary.file, None, Some(found.gid()));
            }
        }
        Ok(temporary)
    }
}

/// Returns the end of a chain of symbolic links that leads to no existing file.
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The kernel has already rejected circular links.
    while let Ok(next) = fs::read_link(&path) {
        path.pop();
        path.push(next);
    }
    path
}

/// A file next to the target. Dropping it removes the file unless it has replaced the target.
pub(crate) struct TemporaryFile {
    pub(crate) target: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl TemporaryFile {
    pub(crate) fn create(target: &Path, mode: u32) -> io::Result<TemporaryFile> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut number = 0;
        loop {
            let path = TemporaryFile::name(target, number);
            match options.open(&path) {
                Ok(file) => {
                    let target = target.to_owned();
                    return Ok(TemporaryFile { target, path, file });
                }
                // Left behind by a killed process with the same PID.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < LEFTOVERS_MAX =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn name(target: &Path, number: u32) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.{number}{TEMPORARY}", std::process::id()));
        target.with_file_name(name)
    }

    pub(crate) fn persist(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Fails if the file has been renamed to the target.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use longwire_testbed::support::Folder;

    use super::*;

    pub(crate) fn names_in(folder: &Folder) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).expect("it is there").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let dir = Folder::new();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its mode");
        let failed = write(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("full").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).expect("it is there"), b"old");
        write(&path, |out| out.write_all(b"new")).expect("writable");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        let permissions = fs::metadata(&path).expect("it is there").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o640);
        assert_eq!(names_in(&dir), ["a.json"]);
    }

    #[test]
    fn symbolic_links_to_a_file_and_to_none_stay_links() {
        for is_there in [true, false] {
            let dir = Folder::new();
            let (path, link) = (dir.path().join("real"), dir.path().join("link"));
            if is_there {
                fs::write(&path, "old").expect("writable");
            }
            symlink("middle", &link).expect("a link");
            symlink("real", dir.path().join("middle")).expect("a link");
            write(&link, |out| out.write_all(b"new")).expect("writable");
            assert_eq!(fs::read(&path).expect("it is there"), b"new");
            assert_eq!(names_in(&dir), ["link", "middle", "real"]);
            assert!(link.is_symlink());
        }
    }

    #[test]
    fn leftovers_of_a_killed_process_do_not_matter() {
        let dir = Folder::new();
        let path = dir.path().join("a.json");
        let target = Target::of(&path).expect("a target");
        for number in 0..3 {
            fs::write(TemporaryFile::name(&target.path, number), "left").expect("writable");
        }
        check(&path).expect("writable");
        write(&path, |out| out.write_all(b"new")).expect("writable");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        assert_eq!(names_in(&dir).len(), 4);
    }

    #[test]
    fn unwritable_files_are_found_before_the_run() {
        let dir = Folder::new();
        let kind = |path: &Path| check(path).map_err(|error| error.kind());
        assert_eq!(kind(dir.path()), Err(io::ErrorKind::IsADirectory));
        let missing = dir.path().join("no/such.json");
        assert_eq!(kind(&missing), Err(io::ErrorKind::NotFound));
        assert_eq!(kind(&dir.path().join("a.json")), Ok(()));
        assert_eq!(kind(Path::new("/dev/null")), Ok(()));
        assert_eq!(names_in(&dir), [""; 0]);
    }
}
