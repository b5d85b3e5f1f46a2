//! Processes held by descriptor, which cannot be confused with later processes that reuse their
//! PIDs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A process. The descriptor becomes readable when the process ends (pidfd_open(2)).
#[derive(Debug)]
pub struct Pidfd {
    file: OwnedFd,
}

impl Pidfd {
    /// Opens a process by its PID in the caller's PID namespace.
    ///
    /// # Errors
    /// ESRCH if no process has this PID; EINVAL if it is a thread but not a group leader.
    pub fn open(process: u32) -> io::Result<Pidfd> {
        let process = libc::pid_t::try_from(process)
            .map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        // SAFETY: the call takes two numbers and no pointer.
        let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let file = Errno::result(file)?;
        // SAFETY: the kernel has just opened this descriptor, which has no other owner.
        let file = unsafe { File::from_raw_fd(file as RawFd) };
        Ok(Pidfd { file: file.into() })
    }

    /// Returns whether the process has ended.
    ///
    /// # Errors
    /// poll(2) fails.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut fds, PollTimeout::ZERO)? > 0)
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_end_of_a_process_is_reported() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep");
        let pidfd = Pidfd::open(child.id()).expect("a process");
        assert!(!pidfd.has_ended().expect("a state"));
        child.kill().expect("it runs");
        let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(10_000u16)), Ok(1));
        assert!(pidfd.has_ended().expect("a state"));
        child.wait().expect("it ended");
        let gone = Pidfd::open(child.id()).expect_err("no process");
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }
}
