//! Resolves a container, pod, process or namespace to its network namespace.
//!
//! | runtime | source | where |
//! |---|---|---|
//! | Docker, Podman | API over a Unix socket | `engines.rs` |
//! | Docker | `/var/lib/docker/containers` | `storage.rs` |
//! | containerd | `io.containerd.runtime.v2.task` of its state directory | `storage.rs` |
//! | CRI-O, Podman | `/run/containers/storage` | `storage.rs` |
//! | any | `/proc/*/cgroup`, if no other source has the name | `processes.rs` |
//!
//! Each source yields [`Container`]s, and `survey.rs` merges those that have the same ID. A PID
//! from a state directory may be stale and belong to another process. It is therefore verified
//! against the start time that the OCI runtime recorded, or against the process's cgroup
//! (`process.rs`).
//!
//! Containers in virtual machines (Kata) may have no process in their network namespace. Their pod
//! is found through the file that its CNI plugin created; otherwise use `--netns`.
//!
//! Files are opened without following symbolic links and read with size limits (`files.rs`).

mod container;
mod engines;
mod error;
mod files;
mod found;
mod machine;
mod name;
mod oci;
mod process;
mod processes;
mod selection;
mod storage;
mod survey;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use container::{Container, Place, PlaceState, Runtime, State};
pub use error::{TargetError, UnknownTarget};
pub use found::FoundTarget;
pub use machine::Machine;
pub use name::{ContainerName, NameError, PodName};
use process::Process;
pub use survey::Survey;

/// A network namespace in the user's notation.
///
/// In JSON, it is an object with one field, such as `{"container": "docker:web"}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A file, or a name in `/run/netns`, the directory of `ip netns` and CNI plugins.
    Netns(PathBuf),
    /// A process in the caller's PID namespace.
    Pid(u32),
    /// A container by ID, ID prefix or name.
    Container(ContainerName),
    /// A Kubernetes pod.
    Pod(PodName),
}

impl Target {
    /// Finds and opens the namespace on this machine.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn resolve(&self) -> Result<FoundTarget, TargetError> {
        Machine::this().resolve(self)
    }
}

impl fmt::Display for Target {
    /// Writes a description such as "container docker:web".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Netns(path) => write!(f, "namespace {}", path.display()),
            Target::Pid(pid) => write!(f, "process {pid}"),
            Target::Container(name) => write!(f, "container {name}"),
            Target::Pod(name) => write!(f, "pod {name}"),
        }
    }
}

/// Returns a process's start time in clock ticks since boot, to detect a reused PID.
///
/// # Errors
/// The process has ended.
pub fn process_start(pid: u32) -> io::Result<u64> {
    Process::open(Path::new("/proc"), pid)?.started()
}
