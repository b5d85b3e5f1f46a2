//! Limits, parent and end of this process.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::{Pidfd, attach};
use longwire_runtime::FileAccess;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::getppid;

/// Raises this process's open-file limit to its maximum. A link at an interface takes about 20
/// descriptors, and the default limit is 1,024.
pub fn raise_open_files() {
    if let Ok((limit, allowed)) = getrlimit(Resource::RLIMIT_NOFILE)
        && limit < allowed
    {
        // Ignore errors: opening too many files reports the limit later.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed);
    }
}

/// Environment variable with the PID of the parent.
pub const PARENT_VARIABLE: &str = "LONGWIRE_PARENT";

/// Returns the files that a topology may name. If a node started this process, the topology comes
/// from a client, to which the run's messages are returned.
pub fn file_access() -> FileAccess {
    match std::env::var_os(PARENT_VARIABLE) {
        Some(_) => FileAccess::Absolute,
        None => FileAccess::Any,
    }
}

/// If the parent requests it, asks the kernel to kill this process when the parent ends. Returns
/// `true` if the parent has already ended or the kernel refuses.
pub fn follow_parent() -> bool {
    let Ok(parent) = std::env::var(PARENT_VARIABLE) else {
        return false;
    };
    prctl::set_pdeathsig(Signal::SIGKILL).is_err() || getppid().to_string() != parent
}

/// Maximum time in milliseconds to expedite grace periods, because this interrupts all cores.
const END_MAX: u16 = 60_000;

/// Starts the helper process `longwire node --end-of PID`, which ends after this process. Without
/// permission to expedite grace periods, the helper has no effect.
///
/// # Errors
/// If the process cannot be started.
pub fn start_end_helper() -> io::Result<()> {
    let ends_with_this = attach::closed_at_end()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("longwire").arg("node").arg("--end-of");
    command.arg(std::process::id().to_string());
    command.stdin(Stdio::from(ends_with_this));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// Waits for a process to exit, and expedites its exit.
///
/// # Errors
/// If the process does not exist.
pub fn shorten_end(process: u32) -> io::Result<()> {
    // Block signals, which a service manager sends to this process as well as its parent.
    let _ = SigSet::all().thread_block();
    let process = Pidfd::open(process)?;
    // The pipe is never written to; reading returns when the other process ends.
    let _ = io::stdin().read(&mut [0]);
    let _hurry = ExpeditedGrace::begin();
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut ended, PollTimeout::from(END_MAX));
    Ok(())
}
