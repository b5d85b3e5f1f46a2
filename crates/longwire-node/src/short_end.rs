//! The process that shortens the end of a killed emulator with many links.
//!
//! The kernel closes the links and sockets of a killed process one after the other, and waits
//! for grace periods for each: 0.2 s for an attachment. Traffic passes meanwhile, but a
//! service manager starts the next node after that only, and no link can be attached to the
//! last interfaces. So the process has a child that expedites the grace periods when it has
//! been killed, until it is gone.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::{Pidfd, attach};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;

/// The longest wait for the end of the process, in milliseconds: grace periods cost the machine
/// interrupts while they are expedited.
const END_MAX: u16 = 60_000;

/// Starts the child, `longwire node --end-of PID`, which ends after this process. Without the right to expedite grace
/// periods it has no effect.
///
/// # Errors
/// If no process can be started.
pub fn start() -> io::Result<()> {
    let ends_with_this = attach::closed_at_end()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("longwire").arg("node").arg("--end-of");
    command.arg(std::process::id().to_string());
    command.stdin(Stdio::from(ends_with_this));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// Waits for the end of the process of this number, and shortens it.
///
/// # Errors
/// If there is no such process.
pub fn shorten(process: u32) -> io::Result<()> {
    // A service manager stops this child together with its parent, which may not end in
    // time.
    let _ = SigSet::all().thread_block();
    let process = Pidfd::open(process)?;
    // It writes nothing.
    let _ = io::stdin().read(&mut [0]);
    let _hurry = ExpeditedGrace::begin();
    let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut ended, PollTimeout::from(END_MAX));
    Ok(())
}
