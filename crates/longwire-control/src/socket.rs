//! A Unix socket that only its owner may open, for as long as a run lasts.
//!
//! * It is never open to others, not even for a moment: its mode is set
//!   before it has a name. Linux gives the name of a socket the mode of the
//!   socket's own inode, less the umask (unix(7), "Pathname socket ownership
//!   and permissions"), and until it listens no client can connect.
//! * A socket that a dead run left behind is replaced. Whether it is dead is
//!   tried by connecting. Two runs that start at once take turns, by a lock
//!   on the folder.

use std::env;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longwire_io::run_directory;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::geteuid;

use crate::error::{CANNOT_LISTEN, ControlError};

/// Only its owner may connect.
const MODE: u32 = 0o600;

/// The names of sockets that no user named begin with this; the process follows.
const OWN: &str = "view-";

/// Another run that starts in the same folder is waited for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket's name, which is removed when this is dropped if it is still the
/// same socket.
#[derive(Debug)]
pub struct Named {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Named {
    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let here = fs::symlink_metadata(&self.path);
        if here.is_ok_and(|here| identity(&here) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Listens at a path.
///
/// # Errors
/// If something else is there, or somebody listens, or the system refuses.
pub fn open(path: &Path) -> Result<(UnixListener, Named), ControlError> {
    let address = UnixAddr::new(path).map_err(|error| match error {
        Errno::ENAMETOOLONG => ControlError::Usage(format!(
            "--control {}: a socket's path has at most 107 bytes; choose a shorter one",
            path.display()
        )),
        error => ControlError::file(path, "cannot be a socket")(error),
    })?;
    let _turn = turn(path)?;
    remove_dead(path, &address)?;
    let kind = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, kind, None)
        .and_then(|ours| fchmod(&ours, Mode::from_bits_truncate(MODE)).map(|()| ours))
        .map_err(ControlError::file(path, "cannot make a socket"))?;
    let bound = bind(ours.as_raw_fd(), &address);
    bound.map_err(ControlError::file(path, CANNOT_LISTEN))?;
    let made =
        fs::symlink_metadata(path).map_err(ControlError::file(path, "the socket is not there"))?;
    let named = Named {
        path: path.to_owned(),
        identity: identity(&made),
    };
    // No client could connect so far.
    if made.permissions().mode() & 0o777 != MODE {
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))
            .map_err(ControlError::file(path, "its mode cannot be set"))?;
    }
    let backlog = Backlog::MAXCONN;
    listen(&ours, backlog).map_err(ControlError::file(path, CANNOT_LISTEN))?;
    Ok((UnixListener::from(ours), named))
}

/// Listens at a socket of this process in a run directory, at which clients find the run
/// without its address.
///
/// # Errors
/// If there is no run directory in which this process may listen: that of the last one.
pub fn open_own() -> Result<(UnixListener, Named), ControlError> {
    let name = format!("{OWN}{}.sock", std::process::id());
    // In a user namespace, root of the namespace may be any user.
    let folders = run_directory::own().into_iter();
    let folders = folders.chain(run_directory::all(env::var_os(run_directory::VARIABLE)));
    let mut opened = Err(ControlError::Usage("there is no run directory".to_owned()));
    for folder in folders {
        opened = open(&folder.join(&name));
        if opened.is_ok() {
            remove_dead_of(&folder);
            break;
        }
    }
    opened
}

/// Removes sockets in this folder that [`open_own`] made for runs that were killed.
fn remove_dead_of(folder: &Path) {
    let own = |name: &str| name.starts_with(OWN) && name.ends_with(".sock");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(own) {
            continue;
        }
        let path = entry.path();
        if let Ok(address) = UnixAddr::new(&path)
            && let Ok(_turn) = turn(&path)
        {
            // One of another user, or of a run that lives, stays.
            let _ = remove_dead(&path, &address);
        }
    }
}

/// Keeps other runs from looking at sockets of this folder meanwhile.
fn turn(path: &Path) -> Result<Flock<File>, ControlError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if run_directory::all(env::var_os(run_directory::VARIABLE))
        .iter()
        .any(|own| own == folder)
    {
        // Other errors show when the directory is opened.
        if let Err(source) = run_directory::create(folder)
            && source.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(ControlError::file(path, CANNOT_LISTEN)(source));
        }
    }
    let file = File::open(folder).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ControlError::Usage(format!(
            "--control {}: there is no directory '{}'; make it with: mkdir -p {1}",
            path.display(),
            folder.display()
        )),
        _ => {
            let action = "the directory of the control socket cannot be opened";
            ControlError::file(folder, action)(source)
        }
    })?;
    let began = Instant::now();
    let mut file = file;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Ok(turn),
            Err((back, Errno::EWOULDBLOCK)) if began.elapsed() < PATIENCE => {
                file = back;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err((_, error)) => {
                let action = "another program keeps this folder locked";
                return Err(ControlError::file(folder, action)(error));
            }
        }
    }
}

/// Removes a socket at which no program listens any more.
fn remove_dead(path: &Path, address: &UnixAddr) -> Result<(), ControlError> {
    let refuse = |why: &str| {
        Err(ControlError::Usage(format!(
            "--control {}: {why}",
            path.display()
        )))
    };
    let Ok(there) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !there.file_type().is_socket() {
        return refuse(
            "something that is no socket is there; it is left alone, choose another path",
        );
    }
    if there.uid() != geteuid().as_raw() {
        return refuse("the socket there belongs to another user; choose another path");
    }
    match is_dead(address) {
        Ok(true) => {
            let action = "the socket of a dead run cannot be removed";
            fs::remove_file(path).map_err(ControlError::file(path, action))
        }
        Ok(false) => refuse("a program that runs listens there; stop it, or choose another path"),
        Err(source) => {
            let action = "whether a program listens at this socket cannot be told";
            Err(ControlError::file(path, action)(source))
        }
    }
}

/// Whether no program listens. A socket whose queue is full is alive.
fn is_dead(address: &UnixAddr) -> io::Result<bool> {
    let kind = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let probe: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, kind, None)?;
    match connect(probe.as_raw_fd(), address) {
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => Ok(false),
        Err(Errno::ECONNREFUSED) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
