//! A Unix socket accessible only to its owner, for the duration of a run.
//!
//! * Other users never have access: the mode is set before the socket has a name. Linux gives the
//!   name the mode of the socket's inode, less the umask (unix(7), "Pathname socket ownership and
//!   permissions"), and no client can connect before the socket listens.
//! * A stale socket, which refuses connections, is replaced. A lock on the directory serialises
//!   runs that start simultaneously.

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

/// File mode: only the owner may connect.
const MODE: u32 = 0o600;

/// Name prefix of automatic sockets; the PID follows it.
const OWN: &str = "view-";

/// Maximum time to wait for another run that is starting in the same directory.
const LOCK_TIME: Duration = Duration::from_secs(2);

/// The name of a socket. On drop, it is removed if it still refers to the same socket.
#[derive(Debug)]
pub struct SocketName {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl SocketName {
    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketName {
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
/// If the path is taken by a live socket or another file, or the system fails.
pub fn open(path: &Path) -> Result<(UnixListener, SocketName), ControlError> {
    let address = UnixAddr::new(path).map_err(|error| match error {
        Errno::ENAMETOOLONG => ControlError::Usage(format!(
            "--control {}: the path is longer than 107 bytes",
            path.display()
        )),
        error => ControlError::file(path, "not a valid socket path")(error),
    })?;
    let _turn = lock_directory(path)?;
    remove_dead(path, &address)?;
    let kind = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, kind, None)
        .and_then(|ours| fchmod(&ours, Mode::from_bits_truncate(MODE)).map(|()| ours))
        .map_err(ControlError::file(path, "cannot create a socket"))?;
    bind(ours.as_raw_fd(), &address).map_err(ControlError::file(path, CANNOT_LISTEN))?;
    let made =
        fs::symlink_metadata(path).map_err(ControlError::file(path, "the socket is missing"))?;
    let named = SocketName {
        path: path.to_owned(),
        identity: identity(&made),
    };
    // No client can connect before the socket listens, so the mode may still change.
    if made.permissions().mode() & 0o777 != MODE {
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))
            .map_err(ControlError::file(path, "cannot set its mode"))?;
    }
    listen(&ours, Backlog::MAXCONN).map_err(ControlError::file(path, CANNOT_LISTEN))?;
    Ok((UnixListener::from(ours), named))
}

/// Listens in a run directory, where clients find the run without being given an address.
///
/// # Errors
/// If this process cannot listen in any run directory; the error is that of the last one.
pub fn open_own() -> Result<(UnixListener, SocketName), ControlError> {
    let name = format!("{OWN}{}.sock", std::process::id());
    // Try this user's directory first: in a user namespace, root may be any user outside.
    let folders = run_directory::own().into_iter();
    let folders = folders.chain(run_directory::all(env::var_os(run_directory::VARIABLE)));
    let mut opened = Err(ControlError::Usage("no run directory".to_owned()));
    for folder in folders {
        opened = open(&folder.join(&name));
        if opened.is_ok() {
            remove_dead_of(&folder);
            break;
        }
    }
    opened
}

/// Removes the automatic sockets of killed runs.
fn remove_dead_of(folder: &Path) {
    let own = |name: &str| name.starts_with(OWN) && name.ends_with(".sock");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(own) {
            continue;
        }
        let path = entry.path();
        if let Ok(address) = UnixAddr::new(&path)
            && let Ok(_turn) = lock_directory(&path)
        {
            // Errors come from sockets of other users and of live runs, which remain.
            let _ = remove_dead(&path, &address);
        }
    }
}

/// Locks a directory against other runs.
fn lock_directory(path: &Path) -> Result<Flock<File>, ControlError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let own = run_directory::all(env::var_os(run_directory::VARIABLE));
    if own.iter().any(|own| own == folder) {
        // Ignore other errors, which recur when the directory is opened.
        if let Err(source) = run_directory::create(folder)
            && source.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(ControlError::file(path, CANNOT_LISTEN)(source));
        }
    }
    let mut file = File::open(folder).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ControlError::Usage(format!(
            "--control {}: no directory '{}'; create it with: mkdir -p {1}",
            path.display(),
            folder.display()
        )),
        _ => {
            let action = "cannot open the directory of the control socket";
            ControlError::file(folder, action)(source)
        }
    })?;
    let began = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Ok(turn),
            Err((back, Errno::EWOULDBLOCK)) if began.elapsed() < LOCK_TIME => {
                file = back;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err((_, error)) => {
                let action = "another program has locked this directory";
                return Err(ControlError::file(folder, action)(error));
            }
        }
    }
}

/// Removes a stale socket.
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
        return refuse("not a socket; choose another path");
    }
    if there.uid() != geteuid().as_raw() {
        return refuse("a socket that belongs to another user; choose another path");
    }
    match is_dead(address) {
        Ok(true) => {
            let action = "cannot remove a stale socket";
            fs::remove_file(path).map_err(ControlError::file(path, action))
        }
        Ok(false) => refuse("another program is listening on it; stop it, or choose another path"),
        Err(source) => {
            let action = "cannot determine whether a program is listening on it";
            Err(ControlError::file(path, action)(source))
        }
    }
}

/// Returns whether a socket is stale. A socket with a full accept queue is not.
fn is_dead(address: &UnixAddr) -> io::Result<bool> {
    let kind = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let probe: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, kind, None)?;
    match connect(probe.as_raw_fd(), address) {
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => Ok(false),
        Err(Errno::ECONNREFUSED) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
