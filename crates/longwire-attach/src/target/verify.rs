//! Verifies a container's PID against its process.
//!
//! runc writes `state.json` with `init_process_pid` and `init_process_start` (libcontainer,
//! `BaseState`), crun writes `status` with `pid` and `process-start-time`
//! (`libcrun/status.c`). Both times are field 22 of `/proc/PID/stat`.

use serde::Deserialize;

use super::container::{Container, State};
use super::files::Directory;
use super::machine::Machine;
use super::process::{Process, Record};

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

/// A process in the state of runc or crun.
#[derive(Debug, Deserialize)]
struct RecordedProcess {
    #[serde(alias = "init_process_pid")]
    pid: u32,
    #[serde(alias = "init_process_start", alias = "process-start-time")]
    started: u64,
}

/// Returns the state of a container by its recorded PID. `is_live`: a daemon of root or of
/// this user has just reported the PID.
pub fn verify(machine: &Machine, container: &Container, pid: u32, is_live: bool) -> State {
    let process = Process::open(&machine.path("/proc"), pid);
    let Some(process) = process.ok().filter(|_| pid != 0) else {
        return State::Stopped;
    };
    // The records are those of root's runtimes.
    let started = match container.user {
        None => recorded_start(machine, container, pid),
        Some(_) => None,
    };
    process.verify(&Record {
        id: &container.id,
        started,
        is_live,
        user: container.user,
    })
}

/// Returns the start time that the OCI runtime has recorded for a container's process.
fn recorded_start(machine: &Machine, container: &Container, pid: u32) -> Option<u64> {
    let namespace = container.namespace.as_deref().unwrap_or("moby");
    let id = container.id.as_str();
    STATES.iter().find_map(|(place, file)| {
        let states = Directory::open(&machine.path(place)).ok()?;
        let paths = [format!("{namespace}/{id}/{file}"), format!("{id}/{file}")];
        let mut recorded = paths
            .iter()
            .filter_map(|path| states.json::<RecordedProcess>(path).ok());
        let recorded = recorded.find(|recorded| recorded.pid == pid)?;
        Some(recorded.started)
    })
}
