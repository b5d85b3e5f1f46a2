//! The guard: a small process that briefly outlives Longwire and cleans up after it, even after
//! SIGKILL.
//!
//! It waits on a pipe whose write end only Longwire holds. The pipe closes whenever Longwire ends,
//! normally or not, so every run exercises the cleanup after a crash.
//!
//! Only processes keep the namespaces and devices alive. The guard ends these processes; the kernel
//! then removes the namespaces and devices.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, pipe2, setsid};

use crate::error::EnvironmentError;
use crate::forwarding;

/// Grace period between SIGTERM and SIGKILL for processes in the namespaces.
const GRACE: Duration = Duration::from_millis(500);
/// Polling interval while waiting for these processes to end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit of the guard; a process that survives SIGKILL is stuck in the kernel.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Longwire's side of the guard.
#[derive(Debug)]
pub struct Guard {
    pipe: Option<File>,
    process: Pid,
}

impl Guard {
    /// Starts the guard.
    ///
    /// Call before starting other threads, and inside the user namespace, whose privileges the
    /// guard needs.
    pub fn start() -> Result<Guard, EnvironmentError> {
        let failed = |error: Errno| EnvironmentError::system("start the guard process", error);
        let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        let parent = getpid();
        // SAFETY: no other threads exist yet whose locks the child could inherit, so it may
        // continue as an ordinary process.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Parent { child } => Ok(Guard {
                pipe: Some(write.into()),
                process: child,
            }),
            ForkResult::Child => {
                drop(write);
                // The parent's destructors and buffers must not run in this process.
                let code = match std::panic::catch_unwind(|| keep_watch(parent, read)) {
                    Ok(()) => 0,
                    Err(_) => 1,
                };
                // SAFETY: ends the process immediately; always allowed.
                unsafe { libc::_exit(code) }
            }
        }
    }

    /// Adds a namespace whose processes end with Longwire.
    pub fn add(&mut self, namespace_inode: u64) -> Result<(), EnvironmentError> {
        match &mut self.pipe {
            Some(pipe) => pipe
                .write_all(&namespace_inode.to_ne_bytes())
                .map_err(|e| EnvironmentError::system("communicate with the guard process", e)),
            None => Ok(()),
        }
    }

    /// Lets the guard clean up, and waits for it.
    pub fn finish(&mut self) {
        if self.pipe.take().is_some() {
            while waitpid(self.process, None) == Err(Errno::EINTR) {}
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Runs the guard process.
fn keep_watch(longwire: Pid, pipe: OwnedFd) {
    detach(&pipe);
    let mut words = Vec::new();
    let mut pipe = File::from(pipe);
    while let Err(error) = pipe.read_to_end(&mut words) {
        if error.kind() != std::io::ErrorKind::Interrupted {
            break;
        }
    }
    let inodes: Vec<u64> = words
        .chunks_exact(8)
        .filter_map(|eight| Some(u64::from_ne_bytes(eight.try_into().ok()?)))
        .collect();
    sweep(&inodes);
    forwarding::release(longwire.as_raw());
}

/// Releases everything shared with Longwire: the terminal and its signals, open files and the
/// working directory.
fn detach(pipe: &OwnedFd) {
    let _ = setsid();
    let _ = SigSet::all().thread_block();
    let _ = prctl::set_name(c"longwire-guard");
    let _ = std::env::set_current_dir("/");
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
    let keep = pipe.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, keep - 1), (keep + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: a system call without memory arguments. The descriptors it closes belong to
            // values of the parent that are never used or dropped in this process.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

/// Ends every process except the caller in the network namespaces with these inodes, first with
/// SIGTERM.
pub(crate) fn sweep(inodes: &[u64]) {
    let begin = Instant::now();
    let mut asked = Vec::new();
    while begin.elapsed() < POLL_TIMEOUT {
        let found = processes_in(inodes);
        if found.is_empty() {
            return;
        }
        for process in found {
            if begin.elapsed() >= GRACE {
                let _ = kill(process, Signal::SIGKILL);
            } else if !asked.contains(&process) {
                let _ = kill(process, Signal::SIGTERM);
                // A stopped process handles signals only after SIGCONT.
                let _ = kill(process, Signal::SIGCONT);
                asked.push(process);
            }
        }
        sleep(POLL_INTERVAL);
    }
}

/// Returns the processes whose network namespace is one of these. Zombies have no namespace.
fn processes_in(inodes: &[u64]) -> Vec<Pid> {
    let own = getpid().as_raw();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&process| process != own)
        .filter(|process| {
            fs::metadata(format!("/proc/{process}/ns/net"))
                .is_ok_and(|metadata| inodes.contains(&metadata.ino()))
        })
        .map(Pid::from_raw)
        .collect()
}
