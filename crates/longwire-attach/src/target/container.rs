//! Containers as their runtimes describe them, and the places searched for them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::name::PodName;

/// Number of ID characters to display, like `docker ps`.
const ID_SHOWN: usize = 12;

/// A container runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
    /// containerd, also under Kubernetes and nerdctl.
    Containerd,
    /// CRI-O.
    CriO,
    /// A runtime known only from its containers' cgroups.
    #[default]
    Unknown,
}

impl FromStr for Runtime {
    type Err = ();

    fn from_str(text: &str) -> Result<Runtime, ()> {
        match text {
            "docker" => Ok(Runtime::Docker),
            "podman" => Ok(Runtime::Podman),
            "containerd" => Ok(Runtime::Containerd),
            "cri-o" | "crio" => Ok(Runtime::CriO),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Docker => "docker",
            Runtime::Podman => "podman",
            Runtime::Containerd => "containerd",
            Runtime::CriO => "cri-o",
            Runtime::Unknown => "an unknown runtime",
        })
    }
}

/// A container's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Running or paused.
    Running {
        /// The container's first process.
        pid: u32,
        /// The process's start time, in clock ticks since boot.
        started: u64,
    },
    /// Running according to the runtime's records, but not yet verified against a process.
    Listed {
        /// The recorded PID; engines' lists have none.
        pid: Option<u32>,
    },
    /// Not running.
    #[default]
    Stopped,
    /// The recorded PID belongs, or may belong, to another process.
    Unverified {
        /// The recorded PID.
        pid: u32,
        /// The reason, as a clause: "process 7 started after the container".
        reason: String,
    },
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The container's runtime.
    pub runtime: Runtime,
    /// The complete ID.
    pub id: String,
    /// The container's names.
    pub names: Vec<String>,
    /// containerd namespace, such as `k8s.io`.
    pub namespace: Option<String>,
    /// The user who runs a rootless runtime.
    pub user: Option<u32>,
    /// The container's pod.
    pub pod: Option<PodName>,
    /// Whether the container is its pod's sandbox, which holds the network namespace.
    pub is_sandbox: bool,
    /// The network namespace's file, if a CNI plugin created it.
    pub network: Option<PathBuf>,
    /// The container's state.
    pub state: State,
}

impl Container {
    /// Creates a container without names.
    pub(super) fn new(runtime: Runtime, id: &str) -> Container {
        Container {
            runtime,
            id: id.to_owned(),
            ..Container::default()
        }
    }

    /// Returns the PID of a running container.
    pub fn pid(&self) -> Option<u32> {
        match self.state {
            State::Running { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Returns an ID prefix for display.
    pub fn short_id(&self) -> &str {
        self.id.get(..ID_SHOWN).unwrap_or(&self.id)
    }

    /// Returns a short name: the pod for a sandbox, else the first name, else the short ID.
    pub fn label(&self) -> String {
        match (&self.pod, self.names.first()) {
            (Some(pod), _) if self.is_sandbox => pod.to_string(),
            (_, Some(name)) => name.clone(),
            (_, None) => self.short_id().to_owned(),
        }
    }

    /// Returns whether `other` describes the same container.
    pub(super) fn is_same(&self, other: &Container) -> bool {
        fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            a.is_none() || b.is_none() || a == b
        }
        // A user's records must not affect another user's containers.
        self.id == other.id
            && self.user == other.user
            && agree(self.pid(), other.pid())
            && agree(self.namespace.as_ref(), other.namespace.as_ref())
    }

    /// Merges another source's information on the same container.
    pub(super) fn merge(&mut self, other: Container) {
        for name in other.names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        if self.runtime == Runtime::Unknown {
            self.runtime = other.runtime;
        }
        self.namespace = self.namespace.take().or(other.namespace);
        self.pod = self.pod.take().or(other.pod);
        self.is_sandbox |= other.is_sandbox;
        self.network = self.network.take().or(other.network);
        if other.state.rank() > self.state.rank() {
            self.state = other.state;
        }
    }
}

impl State {
    /// Ranks states by how much is known about the container.
    fn rank(&self) -> u8 {
        match self {
            State::Stopped => 0,
            State::Unverified { .. } => 1,
            State::Listed { pid: None } => 2,
            State::Listed { pid: Some(_) } => 3,
            State::Running { .. } => 4,
        }
    }
}

impl fmt::Display for Container {
    /// Writes a description such as "container 3fa9c1d2e4f5 (web) of containerd, namespace k8s.io,
    /// pod default/web-0, PID 4711".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_sandbox {
            "sandbox"
        } else {
            "container"
        };
        write!(f, "{kind} {}", self.short_id())?;
        if let Some(name) = self.names.first().filter(|name| **name != self.id) {
            write!(f, " ({name})")?;
        }
        write!(f, " of {}", self.runtime)?;
        if let Some(user) = self.user {
            write!(f, ", user {user}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, ", namespace {namespace}")?;
        }
        if let Some(pod) = &self.pod {
            write!(f, ", pod {pod}")?;
        }
        match &self.state {
            State::Running { pid, .. } => write!(f, ", PID {pid}"),
            State::Listed { .. } => Ok(()),
            State::Stopped => write!(f, ", without a process"),
            State::Unverified { reason, .. } => write!(f, ", {reason}"),
        }
    }
}

/// A socket or directory that was searched for containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket or directory.
    pub path: PathBuf,
    /// Result of searching the place.
    pub state: PlaceState,
}

/// Result of searching one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// Read, with this number of containers.
    Read(usize),
    /// The place does not exist.
    Absent,
    /// Permission denied.
    Denied,
    /// Read error.
    Failed(String),
}

/// The contents of one place.
#[derive(Debug)]
pub struct Reading {
    /// The socket or directory.
    pub path: PathBuf,
    /// The place's containers, or the error.
    pub containers: io::Result<Vec<Container>>,
}

impl Reading {
    /// Reads a directory with `read`, and keeps the result or the error.
    pub fn of(path: PathBuf, read: impl Fn(&Path) -> io::Result<Vec<Container>>) -> Reading {
        Reading {
            containers: read(&path),
            path,
        }
    }

    /// Returns the place with its result.
    pub fn place(&self) -> Place {
        let state = match &self.containers {
            Ok(containers) => PlaceState::Read(containers.len()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => PlaceState::Absent,
                io::ErrorKind::PermissionDenied => PlaceState::Denied,
                _ => PlaceState::Failed(error.to_string()),
            },
        };
        Place {
            path: self.path.clone(),
            state,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.state {
            PlaceState::Read(1) => write!(f, "1 container"),
            PlaceState::Read(count) => write!(f, "{count} containers"),
            PlaceState::Absent => write!(f, "does not exist"),
            PlaceState::Denied => write!(f, "permission denied"),
            PlaceState::Failed(reason) => write!(f, "{reason}"),
        }
    }
}
