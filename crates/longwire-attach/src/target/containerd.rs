//! containerd, by its directories of running tasks.
//!
//! `STATE/io.containerd.runtime.v2.task/NAMESPACE/ID` is the bundle of a task:
//! `config.json`, and `init.pid`, written by the runc shim. It exists from creation to
//! deletion of the task; tested with containerd 1.6 and 1.7, and unchanged in 2.x
//! (`core/runtime/v2`).
//!
//! Docker's containers are in the namespace `moby`.

use std::io;
use std::path::{Path, PathBuf};

use super::container::{Container, Runtime, State};
use super::files::Directory;
use super::machine::Machine;
use super::oci::Configuration;
use super::place::Reading;

/// State directories: containerd's default, k3s and RKE2, MicroK8s, and the containerd
/// started by Docker.
const STATES: [&str; 4] = [
    "/run/containerd",
    "/run/k3s/containerd",
    "/var/snap/microk8s/common/run/containerd",
    "/run/docker/containerd/daemon",
];

/// Directory of tasks in a state directory.
const TASKS: &str = "io.containerd.runtime.v2.task";

/// Docker's namespace.
const DOCKER: &str = "moby";

/// Reads all state directories.
pub fn read(machine: &Machine) -> Vec<Reading> {
    let tasks = states(machine).into_iter().map(|state| state.join(TASKS));
    tasks
        .map(|path| Reading {
            containers: read_tasks(&path),
            path,
        })
        .collect()
}

/// Returns the state directories. For a containerd named by the environment, this is the
/// directory of its socket, in all distributions.
fn states(machine: &Machine) -> Vec<PathBuf> {
    let mut states: Vec<PathBuf> = Vec::new();
    if let Some(address) = machine.variable("CONTAINERD_ADDRESS") {
        let socket = Path::new(address.trim_start_matches("unix://"));
        states.extend(socket.parent().map(Path::to_owned));
    }
    for state in STATES.map(|state| machine.path(state)) {
        if !states.contains(&state) {
            states.push(state);
        }
    }
    states
}

fn read_tasks(tasks: &Path) -> io::Result<Vec<Container>> {
    let tasks = Directory::open(tasks)?;
    let mut containers = Vec::new();
    for namespace in tasks.names()? {
        let Ok(ids) = tasks.inner(&namespace) else {
            continue;
        };
        for id in ids.names()? {
            if let Ok(bundle) = ids.inner(&id) {
                containers.push(container(&bundle, &namespace, &id));
            }
        }
    }
    Ok(containers)
}

fn container(bundle: &Directory, namespace: &str, id: &str) -> Container {
    let runtime = if namespace == DOCKER {
        Runtime::Docker
    } else {
        Runtime::Containerd
    };
    let mut container = Container::new(runtime, id);
    container.namespace = Some(namespace.to_owned());
    // Without a readable configuration, a container is still found by ID.
    if let Ok(configuration) = bundle.json::<Configuration>("config.json") {
        configuration.apply(&mut container);
    }
    container.state = match bundle.number("init.pid") {
        Ok(pid) => State::Listed { pid: Some(pid) },
        Err(_) => State::Stopped,
    };
    container
}
