//! Resolves targets to open namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use longwire_io::Pidfd;
use longwire_io::net::NetNamespace;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::container::{Container, Runtime};
use super::error::TargetError;
use super::machine::Machine;
use super::name::{ContainerName, PodName};
use super::process::Process;
use super::survey::Survey;
use super::{Target, selection};

/// A target's network namespace.
#[derive(Debug)]
pub struct FoundTarget {
    /// The namespace. This value keeps it alive even without processes.
    pub namespace: NetNamespace,
    /// A short name, such as `web` or `default/web-0`.
    pub label: String,
    /// A description, such as "container 3fa9c1d2e4f5 (web) of docker, PID 4711".
    pub description: String,
    /// A process in the namespace; `None` if the namespace was opened by file.
    pub pid: Option<u32>,
    /// The process's start time in clock ticks since boot. Together with the PID, it identifies the
    /// process.
    pub started: Option<u64>,
    /// Whether the namespace is PID 1's, which is the case for a container with host networking.
    pub is_host: bool,
    /// A target that finds the same container or pod again, even after a restart. For a container,
    /// this is the runtime and the complete ID.
    pub target: Target,
    process: Option<Pidfd>,
}

impl FoundTarget {
    /// Returns the namespace's inode number, that of `/proc/PID/ns/net`. It is not reused while
    /// this value exists.
    pub fn inode(&self) -> u64 {
        self.namespace.inode()
    }

    /// Returns a descriptor that becomes readable when the target's process ends; `None` if the
    /// namespace was opened by file.
    pub fn process(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(AsFd::as_fd)
    }

    /// Opens a namespace by path, or by name in one of the directories.
    pub(super) fn named(
        name: &Path,
        directories: &[PathBuf],
        machine: &Machine,
    ) -> Result<FoundTarget, TargetError> {
        let is_plain = name.components().count() == 1 && !name.to_string_lossy().contains('/');
        let candidates: Vec<PathBuf> = if is_plain {
            directories
                .iter()
                .map(|directory| directory.join(name))
                .collect()
        } else {
            vec![name.to_owned()]
        };
        let Some((path, file)) = candidates.iter().find_map(|path| match open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => Some((path, file)),
        }) else {
            return Err(TargetError::NoNamespace {
                path: candidates[0].clone(),
                known: names(directories),
            });
        };
        let namespace = file.and_then(NetNamespace::from_file);
        let namespace = namespace.map_err(|e| TargetError::open(path.display(), e))?;
        let label = name.file_name().unwrap_or(name.as_os_str());
        Ok(FoundTarget {
            is_host: is_host(&namespace, machine),
            namespace,
            label: label.to_string_lossy().into_owned(),
            description: format!("namespace {}", path.display()),
            pid: None,
            started: None,
            target: Target::Netns(path.clone()),
            process: None,
        })
    }

    /// Opens a process's namespace.
    pub(super) fn of_process(pid: u32, machine: &Machine) -> Result<FoundTarget, TargetError> {
        let (process, namespace, pidfd) = open_process(pid, None, machine)?;
        let started = process.started().ok();
        let command = process.command().unwrap_or_default();
        Ok(FoundTarget {
            is_host: is_host(&namespace, machine),
            namespace,
            label: pid.to_string(),
            description: format!("process {pid} ({command})"),
            pid: Some(pid),
            started,
            target: Target::Pid(pid),
            process: pidfd,
        })
    }

    /// Opens a pod's namespace through the file recorded in its sandbox.
    pub(super) fn of_sandbox(
        sandbox: &Container,
        file: &Path,
        pod: &PodName,
        machine: &Machine,
    ) -> Result<FoundTarget, TargetError> {
        let path = machine.path(&file.to_string_lossy());
        let found = FoundTarget::named(&path, &[], machine)?;
        Ok(FoundTarget {
            label: pod.to_string(),
            description: format!("{sandbox}, namespace {}", path.display()),
            target: Target::Pod(pod.clone()),
            ..found
        })
    }

    /// Opens the namespace of a running container whose process started at `started`. With `pod`,
    /// the returned target names the pod instead of the container.
    pub(super) fn of_container(
        container: &Container,
        started: u64,
        pod: Option<&PodName>,
        machine: &Machine,
    ) -> Result<FoundTarget, TargetError> {
        let pid = container.pid().unwrap_or_default();
        let (_, namespace, process) = open_process(pid, Some(started), machine)?;
        let runtime = container.runtime;
        let target = match pod {
            Some(pod) => Target::Pod(pod.clone()),
            None => Target::Container(ContainerName {
                runtime: (runtime != Runtime::Unknown).then_some(runtime),
                text: container.id.clone(),
            }),
        };
        Ok(FoundTarget {
            is_host: is_host(&namespace, machine),
            namespace,
            label: pod.map_or_else(|| container.label(), PodName::to_string),
            description: container.to_string(),
            pid: Some(pid),
            started: Some(started),
            target,
            process,
        })
    }
}

/// Opens a process and its namespace. `started` is the known start time.
fn open_process(
    pid: u32,
    started: Option<u64>,
    machine: &Machine,
) -> Result<(Process, NetNamespace, Option<Pidfd>), TargetError> {
    let failed = |error: io::Error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ESRCH) => TargetError::NoProcess { pid },
        _ => TargetError::open(
            format_args!("the network namespace of process {pid}"),
            error,
        ),
    };
    let process = Process::open(&machine.path("/proc"), pid).map_err(failed)?;
    let now = process.started().map_err(failed)?;
    if started.is_some_and(|started| started != now) {
        return Err(TargetError::NoProcess { pid });
    }
    let namespace = process.namespace().map_err(failed)?;
    let pidfd = machine.has_own_pids().then(|| process.pidfd());
    Ok((process, namespace, pidfd.transpose().map_err(failed)?))
}

/// Opens a file that may be a FIFO or another user's device.
fn open_file(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Returns the names of the namespaces in the directories.
fn names(directories: &[PathBuf]) -> Vec<String> {
    let entries = directories
        .iter()
        .flat_map(fs::read_dir)
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Returns whether the namespace is PID 1's, or the caller's if PID 1 is inaccessible.
fn is_host(namespace: &NetNamespace, machine: &Machine) -> bool {
    let first = Process::open(&machine.path("/proc"), 1).and_then(|process| process.namespace());
    let host = first.or_else(|_| NetNamespace::current().map_err(io::Error::other));
    host.is_ok_and(|host| host.inode() == namespace.inode())
}

/// Directories of named namespaces (ip-netns(8), CNI): the current path and the older one.
const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];

impl Machine {
    /// Returns all running containers.
    pub fn containers(&self) -> Vec<Container> {
        let mut survey = Survey::new(self);
        survey.complete(self);
        let mut containers = survey.containers;
        containers.retain(|container| container.pid().is_some());
        containers
    }

    /// Finds and opens a target's namespace.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn resolve(&self, target: &Target) -> Result<FoundTarget, TargetError> {
        match target {
            Target::Netns(path) => {
                FoundTarget::named(path, &NAMED.map(|path| self.path(path)), self)
            }
            Target::Pid(pid) => FoundTarget::of_process(*pid, self),
            Target::Container(name) => {
                let mut survey = Survey::new(self);
                let (container, started) = selection::container(&mut survey, self, name)?;
                FoundTarget::of_container(&container, started, None, self)
            }
            Target::Pod(name) => match selection::pod(&mut Survey::new(self), self, name) {
                Ok((container, started)) => {
                    FoundTarget::of_container(&container, started, Some(name), self)
                }
                Err(error) => self.sandbox(&error, name).ok_or(error),
            },
        }
    }

    /// Opens the namespace of a pod without processes, through its sandbox's file.
    fn sandbox(&self, error: &TargetError, name: &PodName) -> Option<FoundTarget> {
        let TargetError::NotRunning { candidates, .. } = error else {
            return None;
        };
        let of_root = |c: &&Container| c.is_sandbox && c.user.is_none();
        candidates.iter().filter(of_root).find_map(|sandbox| {
            FoundTarget::of_sandbox(sandbox, sandbox.network.as_ref()?, name, self).ok()
        })
    }
}
