//! File access policy: the regular files that paths from one source may name.
//!
//! Every path in a model, topology or change passes [`FileAccess::check`] before any lookup or
//! open.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::Mode;

use super::FileError;

/// The files that may be read.
#[derive(Clone, Debug, Default)]
pub enum FileAccess {
    /// All regular files that this process can read. Relative paths start at its working directory.
    #[default]
    Any,
    /// All regular files, but only by absolute path. For services, whose working directory the user
    /// does not choose.
    Absolute,
    /// Files below a directory, which is also the base of relative paths.
    Beneath(Arc<Directory>),
    /// No files, with the reason to report. For paths whose author may have fewer rights than this
    /// process.
    Nothing(&'static str),
}

/// A directory that paths cannot leave, neither through `..` nor through symbolic links.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// If the directory does not exist, or the kernel cannot confine paths to it (before Linux
    /// 5.6).
    pub fn open(path: &Path) -> io::Result<Directory> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let handle = fcntl::open(path, flags, Mode::empty())?;
        let path = path.canonicalize()?;
        let directory = Directory { handle, path };
        directory.open_beneath(Path::new("."), flags)?;
        Ok(directory)
    }

    /// Returns the absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_beneath(&self, path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
        let confined = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let how = OpenHow::new().flags(flags).resolve(confined);
        // The kernel requires a retry if a directory was renamed during the
        // call.
        loop {
            match fcntl::openat2(&self.handle, path, how) {
                Err(Errno::EAGAIN) => thread::yield_now(),
                opened => return opened,
            }
        }
    }
}

impl FileAccess {
    /// Checks a path by its text alone, without looking up the file.
    ///
    /// # Errors
    /// [`FileError::Relative`] or [`FileError::Refused`].
    pub fn check(&self, path: &Path) -> Result<(), FileError> {
        match self {
            FileAccess::Nothing(reason) => Err(FileError::Refused(reason)),
            FileAccess::Absolute if !path.is_absolute() => Err(FileError::Relative),
            _ => Ok(()),
        }
    }

    /// Whether error messages may quote file contents: only if the user of this process alone reads
    /// them.
    pub fn may_quote(&self) -> bool {
        matches!(self, FileAccess::Any)
    }

    fn open(&self, path: &Path, flags: OFlag) -> Result<File, FileError> {
        self.check(path)?;
        let flags = flags | OFlag::O_CLOEXEC;
        let opened = match self {
            FileAccess::Nothing(reason) => return Err(FileError::Refused(reason)),
            FileAccess::Any | FileAccess::Absolute => fcntl::open(path, flags, Mode::empty()),
            FileAccess::Beneath(directory) => {
                let outside = || FileError::Outside(directory.path.clone());
                let inner = path.strip_prefix(&directory.path).unwrap_or(path);
                if inner.is_absolute() {
                    return Err(outside());
                }
                match directory.open_beneath(inner, flags) {
                    Err(Errno::EXDEV | Errno::ELOOP) => return Err(outside()),
                    opened => opened,
                }
            }
        };
        Ok(opened.map_err(io::Error::from)?.into())
    }

    /// Opens a regular file for reading. The call may block only on the file system.
    pub(super) fn open_regular(&self, path: &Path) -> Result<File, FileError> {
        // Checked before opening, because opening a device has side effects.
        check_regular(&self.open(path, OFlag::O_PATH)?)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = self.open(path, flags)?;
        // Checked again, because the path may resolve to a different file by now.
        check_regular(&file)?;
        Ok(file)
    }

    /// Returns a path at which a regular file can be opened again; for a file below a directory,
    /// its real path.
    ///
    /// # Errors
    /// If the path is refused or is not a regular file.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, FileError> {
        let file = self.open(Path::new(path), OFlag::O_PATH)?;
        check_regular(&file)?;
        if let FileAccess::Any | FileAccess::Absolute = self {
            return Ok(path.into());
        }
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(std::fs::read_link(link)?)
    }
}

fn check_regular(file: &File) -> Result<(), FileError> {
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(FileError::Directory),
        kind if kind.is_fifo() => Err(FileError::NotRegular("FIFO")),
        kind if kind.is_socket() => Err(FileError::NotRegular("socket")),
        _ => Err(FileError::NotRegular("device")),
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Folder;

    use super::*;

    #[test]
    fn paths_are_refused_before_they_are_looked_up() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").expect("a file");
        let opened = FileAccess::Absolute.open_regular(&file);
        opened.expect("it is absolute");
        // The error is the same for an existing, a secret and a missing file.
        for path in [&*file, Path::new("/etc/shadow"), Path::new("/nowhere")] {
            let access = FileAccess::Nothing("not here");
            let refused = access.open_regular(path);
            assert!(matches!(refused, Err(FileError::Refused("not here"))));
            let refused = access.resolve(path.to_str().expect("plain"));
            assert!(matches!(refused, Err(FileError::Refused("not here"))));
        }
        for path in ["Cargo.toml", "../nowhere", "./x", "-"] {
            let refused = FileAccess::Absolute.open_regular(Path::new(path));
            assert!(matches!(refused, Err(FileError::Relative)), "{path}");
        }
    }

    #[test]
    fn paths_do_not_lead_out_of_a_directory() {
        let folder = Folder::new();
        let base = folder.path();
        let inner = base.join("inner");
        std::fs::create_dir_all(&inner).expect("a directory");
        std::fs::write(base.join("outside"), "x").expect("a file");
        std::fs::write(inner.join("file"), "x").expect("a file");
        std::os::unix::fs::symlink("../outside", inner.join("escape")).expect("a link");
        std::os::unix::fs::symlink("file", inner.join("alias")).expect("a link");
        let access = FileAccess::Beneath(Arc::new(Directory::open(&inner).expect("opened")));
        let absolute = inner.canonicalize().expect("it is there").join("file");
        for good in [Path::new("file"), Path::new("alias"), &absolute] {
            let found = access.resolve(good.to_str().expect("a plain name"));
            assert_eq!(found.expect("it is in it"), absolute);
            access.open_regular(good).expect("it is in it");
        }
        let absolute = ["/etc/passwd", "/proc/self/maps"];
        for bad in ["../outside", "escape", "../inner/file"]
            .into_iter()
            .chain(absolute)
        {
            let refused = access.open_regular(Path::new(bad));
            assert!(matches!(refused, Err(FileError::Outside(_))), "{bad}");
            assert!(access.resolve(bad).is_err(), "{bad}");
        }
    }
}
