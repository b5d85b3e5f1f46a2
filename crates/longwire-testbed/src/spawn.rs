//! Starts a command in one of the namespaces.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use longwire_io::net::NetNamespace;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid};

use crate::error::EnvironmentError;
use crate::mounts::Mounts;
use crate::peer_output::PeerStreams;
use crate::supervise::Signals;

/// Network and file system of a command.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Network of the command.
    pub network: &'a NetNamespace,
    /// File system; `None` for the caller's.
    pub mounts: Option<&'a Mounts>,
}

/// Starts a command in a place, with the caller's working directory and user. The command is killed
/// when the calling *thread* ends, so call this from a thread that lasts for the whole run.
///
/// Without `streams`, the command shares the caller's input and output. With `streams`, it is a
/// peer: its input is empty, and it leads a separate process group that does not receive the
/// terminal's signals.
pub fn start(
    place: Place<'_>,
    words: &[OsString],
    variables: &[(&str, OsString)],
    streams: Option<PeerStreams>,
) -> Result<Child, EnvironmentError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(not_found(OsStr::new("")));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(streams) = streams {
        command.process_group(0);
        command.stdin(Stdio::null());
        command.stdout(streams.stdout).stderr(streams.stderr);
    }
    start_in(place, &mut command)
}

/// Starts a command in a place. It is killed when the calling *thread* ends.
pub fn start_in(place: Place<'_>, command: &mut Command) -> Result<Child, EnvironmentError> {
    let program = command.get_program().to_owned();
    let parent = getpid();
    // Allocate before forking: allocation is not allowed between fork and exec.
    let network = place.network.as_fd().try_clone_to_owned();
    let network = network.map_err(|source| spawn_error(&program, source))?;
    let mounts = place.mounts.map(Mounts::try_clone).transpose();
    let mounts = mounts.map_err(|source| spawn_error(&program, source))?;
    let signals = Signals::set();
    let enter = move || -> io::Result<()> {
        let entered = setns(&network, CloneFlags::CLONE_NEWNET)
            .and_then(|()| mounts.as_ref().map_or(Ok(()), Mounts::enter));
        // ENOENT and EACCES are reported as problems of the command, so only exec may return them.
        entered.map_err(|error| match error {
            nix::Error::ENOENT | nix::Error::EACCES => io::Error::from_raw_os_error(libc::EIO),
            other => other.into(),
        })?;
        // A signal mask survives exec, so Ctrl-C would be blocked.
        signals.thread_unblock()?;
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have ended before PR_SET_PDEATHSIG took effect.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls (setns, fchdir, chroot, sigmask, prctl,
    // getppid) on descriptors it owns; it neither allocates nor locks.
    unsafe { command.pre_exec(enter) };
    command
        .spawn()
        .map_err(|source| spawn_error(&program, source))
}

fn spawn_error(program: &OsStr, source: io::Error) -> EnvironmentError {
    let command = program.to_string_lossy().into_owned();
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => not_found(program),
        // The PATH search also returns EACCES if one directory is inaccessible and the others lack
        // the command.
        Some(libc::EACCES) if !is_path(program) && !exists(program) => not_found(program),
        Some(libc::EACCES | libc::ENOEXEC | libc::EISDIR) => {
            EnvironmentError::NotExecutable { command, source }
        }
        _ => EnvironmentError::Spawn { command, source },
    }
}

fn not_found(program: &OsStr) -> EnvironmentError {
    let fault = if exists(program) {
        "lacks its interpreter; see its first line (#!) or `ldd`"
    } else if is_path(program) {
        "not found: no such file"
    } else {
        "not found in PATH; install its package, or write the command's path"
    };
    EnvironmentError::NotFound {
        command: program.to_string_lossy().into_owned(),
        fault,
    }
}

/// Returns whether a program is given by its path, without a search of PATH.
fn is_path(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

/// Returns whether the program exists: at the given path or, for a plain name, in a directory of
/// PATH.
fn exists(program: &OsStr) -> bool {
    if is_path(program) {
        return Path::new(program).exists();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join(program).is_file())
}
