//! A process, held by an open directory of `/proc`. Files opened through it belong to that
//! process, even if its PID is reused (proc(5)).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use longwire_io::Pidfd;
use longwire_io::net::NetNamespace;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::container::State;
use super::files::read_limited;
use super::name::is_full_id;

/// Maximum size of a file of `/proc/PID`.
const BYTES_MAX: u64 = 1 << 16;

/// A process.
#[derive(Debug)]
pub struct Process {
    /// PID in the PID namespace of its `/proc`.
    pub pid: u32,
    directory: OwnedFd,
}

/// Evidence for a container's PID.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The complete ID.
    pub id: &'a str,
    /// Start time recorded by the OCI runtime, in clock ticks.
    pub started: Option<u64>,
    /// Whether a daemon of root or of this user has just reported the PID.
    pub is_live: bool,
    /// User of a rootless runtime, who must own the network namespace.
    pub user: Option<u32>,
}

impl Process {
    /// Opens the process with this PID; `proc` is the mount point of proc(5).
    pub fn open(proc: &Path, pid: u32) -> io::Result<Process> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = open(&proc.join(pid.to_string()), flags, Mode::empty())?;
        Ok(Process { pid, directory })
    }

    fn file(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.directory, path, flags, Mode::empty())?)
    }

    fn text(&self, path: &str) -> io::Result<String> {
        let bytes = read_limited(File::from(self.file(path)?), BYTES_MAX)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the start time in clock ticks since boot. For a zombie, it is an error.
    pub fn started(&self) -> io::Result<u64> {
        match started_of(&self.text("stat")?) {
            Some(('Z' | 'X', _)) => Err(io::Error::from(Errno::ESRCH)),
            Some((_, started)) => Ok(started),
            None => {
                let what = "/proc/PID/stat has an unknown format";
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }

    /// Returns its cgroups, one line per hierarchy.
    pub fn cgroups(&self) -> io::Result<String> {
        self.text("cgroup")
    }

    /// Returns its command name.
    pub fn command(&self) -> Option<String> {
        Some(self.text("comm").ok()?.trim_end().to_owned())
    }

    /// Opens its network namespace.
    pub fn namespace(&self) -> io::Result<NetNamespace> {
        NetNamespace::from_file(self.file("ns/net")?)
    }

    /// Opens a pidfd, which becomes readable when the process ends.
    pub fn pidfd(&self) -> io::Result<Pidfd> {
        let pidfd = Pidfd::open(self.pid)?;
        // The directory fails with ESRCH once its process is reaped. Success here proves
        // that the PID was not reused before the pidfd was opened.
        self.started()?;
        Ok(pidfd)
    }

    /// Checks that the process belongs to the container.
    pub fn verify(&self, record: &Record<'_>) -> State {
        let pid = self.pid;
        let Ok(started) = self.started() else {
            return State::Stopped;
        };
        let unverified = |reason| State::Unverified { pid, reason };
        // A user may record any PID.
        if let Some(user) = record.user
            && !matches!(self.namespace().and_then(|n| n.owner()), Ok(owner) if owner == user)
        {
            return unverified(format!("PID {pid} does not belong to user {user}"));
        }
        match record.started {
            Some(recorded) if recorded == started => return State::Running { pid, started },
            Some(_) => {
                let reason = format!("PID {pid} was reused after the container exited");
                return unverified(reason);
            }
            None => {}
        }
        let cgroups = self.cgroups().unwrap_or_default();
        if record.is_live || is_in_cgroup(&cgroups, record.id) {
            return State::Running { pid, started };
        }
        unverified(format!(
            "PID {pid} ({}) is not in a cgroup of the container",
            self.command().unwrap_or_default()
        ))
    }
}

/// Returns state and start time, fields 3 and 22 of `/proc/PID/stat`. Field 2, the command
/// name, may contain spaces and parentheses.
fn started_of(stat: &str) -> Option<(char, u64)> {
    let (_, after) = stat.rsplit_once(") ")?;
    let started = after.split(' ').nth(19)?.parse().ok()?;
    Some((after.chars().next()?, started))
}

/// Whether a line of `/proc/PID/cgroup` names the container: as a path component or, with
/// systemd, as `docker-ID.scope` or `cri-containerd:ID`. A short ID may also be the suffix
/// of another, so it must be preceded by a single word.
fn is_in_cgroup(cgroups: &str, id: &str) -> bool {
    let mut names = cgroups.lines().flat_map(|line| line.split('/'));
    names.any(|name| {
        let scope = name.strip_suffix(".scope");
        let Some(before) = scope.unwrap_or(name).strip_suffix(id) else {
            return false;
        };
        let word = before.strip_suffix(['-', ':']);
        before.is_empty()
            || match word {
                Some(word) if is_full_id(id) => !word.contains("conmon"),
                Some(word) => scope.is_some() && !word.contains(['-', ':']),
                None => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_after_any_name() {
        let tail = "S 1 2 2 0 -1 4194560 721 0 0 0 0 0 0 0 20 0 1 0 767583 3227648 502";
        for name in ["busybox", "a) S 1 (b", "x y"] {
            let stat = format!("7 ({name}) {tail}");
            assert_eq!(started_of(&stat), Some(('S', 767_583)));
        }
        assert_eq!(started_of("7 (a) S 1 2"), None);
        assert_eq!(started_of(""), None);
    }

    #[test]
    fn the_container_is_a_whole_component_of_the_path() {
        let id = "3fa9".repeat(16);
        for line in [
            "0::/default/ID",
            "5:devices:/docker/ID",
            "0::/system.slice/docker-ID.scope",
            "0::/kubepods.slice/cri-containerd-ID.scope/init.scope",
            "0::/kubepods-pod1.slice:cri-containerd:ID",
        ] {
            assert!(is_in_cgroup(&line.replace("ID", &id), &id), "{line}");
        }
        for line in [
            "0::/default/web",
            "0::/a.slice/default-web.scope",
            "0::/web/x",
        ] {
            assert!(is_in_cgroup(line, "web"), "{line}");
        }
        for line in [
            "0::/",
            "0::/default/web2",
            "0::/default/myweb",
            "0::/default/my-web",
            "0::/a.slice/default-my-web.scope",
            "0::/machine.slice/libpod-conmon-web.scope",
        ] {
            assert!(!is_in_cgroup(line, "web"), "{line}");
        }
        let line = format!("0::/machine.slice/libpod-conmon-{id}.scope");
        assert!(!is_in_cgroup(&line, &id));
    }
}
