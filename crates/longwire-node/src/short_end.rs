//! Child process that shortens the end of a killed emulator with many links.
//!
//! The kernel closes the links and sockets of a killed process one by one, with RCU grace periods
//! of 0.2 s per attachment. Traffic passes meanwhile, but a service manager does not start the
//! next node, and the last interfaces take no new link. After a kill, the child expedites grace
//! periods until the process is gone.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::{Pidfd, attach};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;

/// Time limit in milliseconds: expedited grace periods cause interrupts on all cores.
const END_MAX: u16 = 60_000;

/// Starts the child, `longwire node --end-of PID`, which ends after this process. It has no effect
/// without the right to expedite grace periods.
///
/// # Errors
/// If the process cannot start.
pub fn start() -> io::Result<()> {
    let ends_with_this = attach::closed_at_end()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("longwire").arg("node").arg("--end-of");
    command.arg(std::process::id().to_string());
    command.stdin(Stdio::from(ends_with_this));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// Waits for a process to end, and shortens its end.
///
/// # Errors
/// If the process does not exist.
pub fn shorten(process: u32) -> io::Result<()> {
    // A service manager signals this child together with its parent.
    let _ = SigSet::all().thread_block();
    let process = Pidfd::open(process)?;
    // Returns at end of file; nothing is written.
    let _ = io::stdin().read(&mut [0]);
    let _hurry = ExpeditedGrace::begin();
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut ended, PollTimeout::from(END_MAX));
    Ok(())
}
