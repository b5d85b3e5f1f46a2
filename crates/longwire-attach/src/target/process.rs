//! A process, held by an open `/proc` directory. Files opened through it belong to that process
//! even if its PID is reused (proc(5)).
//!
//! A container's PID is verified against its process. runc writes `state.json` with
//! `init_process_pid` and `init_process_start` (libcontainer, `BaseState`), and crun writes
//! `status` with `pid` and `process-start-time` (`libcrun/status.c`). Both times are field 22 of
//! `/proc/PID/stat`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use longwire_io::Pidfd;
use longwire_io::net::NetNamespace;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use serde::Deserialize;

use super::container::{Container, State};
use super::files::{Directory, invalid, read_limited};
use super::machine::Machine;
use super::name::is_full_id;

/// Maximum size in bytes of a file in `/proc/PID`.
const BYTES_MAX: u64 = 1 << 16;

/// A process, identified by its open `/proc` directory.
#[derive(Debug)]
pub struct Process {
    /// PID in its `/proc`'s PID namespace.
    pub pid: u32,
    directory: OwnedFd,
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

    /// Returns the start time in clock ticks since boot. Fails for a zombie.
    pub fn started(&self) -> io::Result<u64> {
        match started_of(&self.text("stat")?) {
            Some(('Z' | 'X', _)) => Err(io::Error::from(Errno::ESRCH)),
            Some((_, started)) => Ok(started),
            None => Err(invalid("unknown format of /proc/PID/stat")),
        }
    }

    /// Returns the process's cgroups, one line per hierarchy.
    pub fn cgroups(&self) -> io::Result<String> {
        self.text("cgroup")
    }

    /// Returns the command name.
    pub fn command(&self) -> Option<String> {
        Some(self.text("comm").ok()?.trim_end().to_owned())
    }

    /// Opens the process's network namespace.
    pub fn namespace(&self) -> io::Result<NetNamespace> {
        NetNamespace::from_file(self.file("ns/net")?)
    }

    /// Opens a pidfd, which becomes readable when the process ends.
    pub fn pidfd(&self) -> io::Result<Pidfd> {
        let pidfd = Pidfd::open(self.pid)?;
        // The directory fails with ESRCH once its process is reaped. Success proves that the PID
        // was not reused before the pidfd was opened.
        self.started()?;
        Ok(pidfd)
    }

    /// Checks that the process belongs to the container. `recorded` is the start time in clock
    /// ticks that the OCI runtime recorded. `is_live` means that a daemon of root or of this user
    /// has just reported the PID.
    fn verify(&self, container: &Container, recorded: Option<u64>, is_live: bool) -> State {
        let pid = self.pid;
        let Ok(started) = self.started() else {
            return State::Stopped;
        };
        let unverified = |reason| State::Unverified { pid, reason };
        // Users can record any PID, but a rootless container's network namespace belongs to its
        // user.
        if let Some(user) = container.user
            && !matches!(self.namespace().and_then(|n| n.owner()), Ok(owner) if owner == user)
        {
            return unverified(format!("PID {pid} does not belong to user {user}"));
        }
        if recorded.is_some_and(|recorded| recorded != started) {
            return unverified(format!("PID {pid} was reused after the container exited"));
        }
        let is_in_cgroup = || is_in_cgroup(&self.cgroups().unwrap_or_default(), &container.id);
        if recorded.is_some() || is_live || is_in_cgroup() {
            return State::Running { pid, started };
        }
        unverified(format!(
            "PID {pid} ({}) is not in a cgroup of the container",
            self.command().unwrap_or_default()
        ))
    }
}

/// Returns state and start time, fields 3 and 22 of `/proc/PID/stat`. Field 2, the command name,
/// may contain spaces and parentheses.
fn started_of(stat: &str) -> Option<(char, u64)> {
    let (_, after) = stat.rsplit_once(") ")?;
    let started = after.split(' ').nth(19)?.parse().ok()?;
    Some((after.chars().next()?, started))
}

/// Returns whether a line in `/proc/PID/cgroup` names the container, either as a path component or,
/// with systemd, as `docker-ID.scope` or `cri-containerd:ID`. A short ID must follow a single word,
/// because it may be the end of a longer ID.
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

/// State directories of runc and crun. containerd and Docker have an additional level for
/// namespaces.
const STATES: [(&str, &str); 6] = [
    ("/run/containerd/runc", "state.json"),
    ("/run/docker/runtime-runc", "state.json"),
    ("/run/containerd/runc", "status"),
    ("/run/runc", "state.json"),
    ("/run/crun", "status"),
    ("/run/crio/runc", "state.json"),
];

/// A process record in the state of runc or crun.
#[derive(Debug, Deserialize)]
struct RecordedProcess {
    #[serde(alias = "init_process_pid")]
    pid: u32,
    #[serde(alias = "init_process_start", alias = "process-start-time")]
    started: u64,
}

/// Returns a container's state from its recorded PID. `is_live` means that a daemon of root or of
/// this user has just reported the PID.
pub fn verify(machine: &Machine, container: &Container, pid: u32, is_live: bool) -> State {
    let process = Process::open(&machine.path("/proc"), pid);
    let Some(process) = process.ok().filter(|_| pid != 0) else {
        return State::Stopped;
    };
    // Only root's runtimes keep records in these directories.
    let started = match container.user {
        None => recorded_start(machine, container, pid),
        Some(_) => None,
    };
    process.verify(container, started, is_live)
}

/// Returns the start time that the OCI runtime recorded for a container's process.
fn recorded_start(machine: &Machine, container: &Container, pid: u32) -> Option<u64> {
    let namespace = container.namespace.as_deref().unwrap_or("moby");
    let id = container.id.as_str();
    STATES.iter().find_map(|(place, file)| {
        let states = Directory::open(&machine.path(place)).ok()?;
        [format!("{namespace}/{id}/{file}"), format!("{id}/{file}")]
            .iter()
            .filter_map(|path| states.json::<RecordedProcess>(path).ok())
            .find_map(|recorded| (recorded.pid == pid).then_some(recorded.started))
    })
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::rows;

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
        let full = "3fa9".repeat(16);
        for [id, is_in, line] in rows(
            "ID  | yes | 0::/default/ID
    ID  | yes | 5:devices:/docker/ID
    ID  | yes | 0::/system.slice/docker-ID.scope
    ID  | yes | 0::/kubepods.slice/cri-containerd-ID.scope/init.scope
    ID  | yes | 0::/kubepods-pod1.slice:cri-containerd:ID
    ID  | no  | 0::/machine.slice/libpod-conmon-ID.scope
    web | yes | 0::/default/web
    web | yes | 0::/a.slice/default-web.scope
    web | yes | 0::/web/x
    web | no  | 0::/
    web | no  | 0::/default/web2
    web | no  | 0::/default/myweb
    web | no  | 0::/default/my-web
    web | no  | 0::/a.slice/default-my-web.scope
    web | no  | 0::/machine.slice/libpod-conmon-web.scope",
        ) {
            let (id, line) = (id.replace("ID", &full), line.replace("ID", &full));
            assert_eq!(is_in_cgroup(&line, &id), is_in == "yes", "{line}");
        }
    }
}
