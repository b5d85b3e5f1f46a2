//! Containers as their runtimes describe them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::name::PodName;

/// Characters of an ID that are shown, as `docker ps` does.
const ID_SHOWN: usize = 12;

/// A container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
    /// containerd, also below Kubernetes and nerdctl.
    Containerd,
    /// CRI-O.
    CriO,
    /// A runtime that is known by the cgroups of its containers alone.
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

/// State of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or is paused.
    Running {
        /// Its first process.
        pid: u32,
        /// Start of the process, in clock ticks since the start of the system.
        started: u64,
    },
    /// It runs by the records of its runtime, which were not compared with a process yet.
    Listed {
        /// The recorded PID; engines' lists have none.
        pid: Option<u32>,
    },
    /// It does not run.
    Stopped,
    /// The recorded PID belongs to another process, or may.
    Unverified {
        /// The recorded PID.
        pid: u32,
        /// The reason, as a clause: "process 7 started after the container".
        reason: String,
    },
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its runtime.
    pub runtime: Runtime,
    /// Its complete ID.
    pub id: String,
    /// Its names.
    pub names: Vec<String>,
    /// The namespace of containerd, as in `k8s.io`.
    pub namespace: Option<String>,
    /// The user of a rootless runtime.
    pub user: Option<u32>,
    /// Its pod.
    pub pod: Option<PodName>,
    /// Whether it is the sandbox of its pod, which holds the network namespace.
    pub is_sandbox: bool,
    /// The file of its network namespace, if a CNI plugin made one.
    pub network: Option<PathBuf>,
    /// Its state.
    pub state: State,
}

impl Container {
    /// Returns a container without names.
    pub(super) fn new(runtime: Runtime, id: &str) -> Container {
        Container {
            runtime,
            id: id.to_owned(),
            names: Vec::new(),
            namespace: None,
            user: None,
            pod: None,
            is_sandbox: false,
            network: None,
            state: State::Stopped,
        }
    }

    /// Returns the PID of a running container.
    pub fn pid(&self) -> Option<u32> {
        match self.state {
            State::Running { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Returns the beginning of the ID.
    pub fn short_id(&self) -> &str {
        self.id.get(..ID_SHOWN).unwrap_or(&self.id)
    }

    /// Returns a short name: that of a sandbox's pod, the first name, or the short ID.
    pub fn label(&self) -> String {
        match (&self.pod, self.names.first()) {
            (Some(pod), _) if self.is_sandbox => pod.to_string(),
            (_, Some(name)) => name.clone(),
            (_, None) => self.short_id().to_owned(),
        }
    }

    /// Whether another source describes the same container.
    pub(super) fn is_same(&self, other: &Container) -> bool {
        fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            a.is_none() || b.is_none() || a == b
        }
        // A user must not be able to give names to containers of another.
        self.id == other.id
            && self.user == other.user
            && agree(self.pid(), other.pid())
            && agree(self.namespace.as_ref(), other.namespace.as_ref())
    }

    /// Adds what another source knows about the same container.
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
    /// Orders states by how much they say about the container.
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
    /// As in "container 3fa9c1d2e4f5 (web) of containerd, namespace k8s.io, pod
    /// default/web-0, PID 4711".
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
