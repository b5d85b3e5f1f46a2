//! State directories of container runtimes.
//!
//! CRI-O and Podman use those of their common library `containers/storage`:
//! `RUNROOT/DRIVER-containers/ID/userdata/pidfile` has the PID, and
//! `GRAPHROOT/DRIVER-containers/containers.json` has the names. `config.json` is in the first
//! directory (CRI-O) or the second (Podman, `bundlePath` of libpod). The roots are those of
//! `containers-storage.conf(5)`; rootless Podman uses `$XDG_RUNTIME_DIR/containers`. Recent
//! versions of CRI-O run most sandboxes without a process (`drop_infra_ctr`). Such sandboxes are
//! listed as stopped, and the pod is found through another of its containers.
//!
//! containerd: `STATE/io.containerd.runtime.v2.task/NAMESPACE/ID` is a running task's bundle, with
//! `config.json` and the runc shim's `init.pid`. It exists from the task's creation to its
//! deletion. Tested with containerd 1.6 and 1.7, and unchanged in 2.x (`core/runtime/v2`). Docker's
//! containers are in the namespace `moby`.
//!
//! Docker: `/var/lib/docker/containers/ID/config.v2.json` is the daemon's container
//! (`container.Container` of moby), with a leading slash in `Name`, and `Pid` in `State`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::container::{Container, Reading, Runtime, State};
use super::files::Directory;
use super::machine::Machine;
use super::name::is_full_id;
use super::oci::Configuration;

/// Directory of running containers.
const RUN_ROOT: &str = "/run/containers/storage";

/// Directory of all of root's containers.
const GRAPH_ROOT: &str = "/var/lib/containers/storage";

/// Suffix of the drivers' directories, such as `overlay-containers`.
const DRIVER_SUFFIX: &str = "-containers";

/// Container lists. The second lists containers that do not survive a reboot.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];

/// An entry of [`LISTS`].
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

/// Container names by ID.
type Names = BTreeMap<String, Vec<String>>;

/// Reads all directories, in order of precedence.
pub fn read(machine: &Machine) -> impl Iterator<Item = Reading> {
    let docker = Reading::of(machine.path(CONTAINERS), read_containers);
    let tasks = states(machine).into_iter().map(|state| state.join(TASKS));
    let containerd = tasks.map(|path| Reading::of(path, read_tasks));
    std::iter::once(docker)
        .chain(read_storage(machine))
        .chain(containerd)
}

/// Reads the directories of root and all users.
fn read_storage(machine: &Machine) -> Vec<Reading> {
    let users = machine.user_directories().into_iter();
    let users = users.map(|directory| (directory.path.join("containers"), directory.user));
    std::iter::once((machine.path(RUN_ROOT), None))
        .chain(users)
        .map(|(path, user)| Reading::of(path, |path| read_root(machine, path, user)))
        .collect()
}

fn read_root(machine: &Machine, run_root: &Path, user: Option<u32>) -> io::Result<Vec<Container>> {
    let root = Directory::open(run_root)?;
    let mut containers = Vec::new();
    for driver in root.names()? {
        if !driver.ends_with(DRIVER_SUFFIX) {
            continue;
        }
        let Ok(running) = root.inner(&driver) else {
            continue;
        };
        // Only root's graph root has this path; a user's is in the home directory.
        let graph = Directory::open(&machine.path(GRAPH_ROOT).join(&driver)).ok();
        let graph = graph.filter(|_| user.is_none());
        let names = names(&[Some(&running), graph.as_ref()]);
        for id in running.names()? {
            if user.is_some() && !is_full_id(&id) {
                continue;
            }
            if let Ok(directory) = running.inner(&format!("{id}/userdata")) {
                let kept = graph.as_ref();
                let kept = kept.and_then(|graph| graph.inner(&format!("{id}/userdata")).ok());
                let mut container = container(&id, &[Some(&directory), kept.as_ref()]);
                container
                    .names
                    .extend(names.get(&id).into_iter().flatten().cloned());
                container.user = user;
                container.state = recorded(&directory, "pidfile");
                containers.push(container);
            }
        }
    }
    Ok(containers)
}

fn container(id: &str, directories: &[Option<&Directory>; 2]) -> Container {
    let mut directories = directories.iter().flatten();
    let read = |directory: &&Directory| directory.json::<Configuration>("config.json").ok();
    let configuration = directories.find_map(read).unwrap_or_default();
    let mut container = Container::new(configuration.manager().unwrap_or(Runtime::Podman), id);
    configuration.apply(&mut container);
    container
}

fn names(directories: &[Option<&Directory>; 2]) -> Names {
    let directories = directories.iter().flatten();
    directories
        .flat_map(|directory| LISTS.map(|list| directory.json::<Vec<Row>>(list)))
        .flatten()
        .flatten()
        .map(|row| (row.id, row.names))
        .collect()
}

/// State directories: containerd's default, k3s and RKE2, MicroK8s, and the containerd that Docker
/// starts.
const STATES: [&str; 4] = [
    "/run/containerd",
    "/run/k3s/containerd",
    "/var/snap/microk8s/common/run/containerd",
    "/run/docker/containerd/daemon",
];

/// Directory of tasks in a state directory.
const TASKS: &str = "io.containerd.runtime.v2.task";

/// Docker's containerd namespace.
const DOCKER: &str = "moby";

/// Returns the state directories. If the environment names a containerd socket, the state directory
/// is that of the socket, which is the case in all distributions.
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
                containers.push(task(&bundle, &namespace, &id));
            }
        }
    }
    Ok(containers)
}

fn task(bundle: &Directory, namespace: &str, id: &str) -> Container {
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
    container.state = recorded(bundle, "init.pid");
    container
}

/// Returns a container's state, from the PID recorded in this file.
fn recorded(directory: &Directory, file: &str) -> State {
    match directory.number(file) {
        Ok(pid) => State::Listed { pid: Some(pid) },
        Err(_) => State::Stopped,
    }
}

/// Docker's directory of containers.
const CONTAINERS: &str = "/var/lib/docker/containers";

/// The relevant parts of `config.v2.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContainerFile {
    #[serde(default)]
    name: String,
    state: SavedState,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SavedState {
    running: bool,
    #[serde(default)]
    pid: u32,
}

fn read_containers(path: &Path) -> io::Result<Vec<Container>> {
    let directory = Directory::open(path)?;
    let mut containers = Vec::new();
    for id in directory.names()? {
        let Ok(saved) = directory.json::<ContainerFile>(&format!("{id}/config.v2.json")) else {
            continue;
        };
        let mut container = Container::new(Runtime::Docker, &id);
        let name = Some(saved.name.trim_start_matches('/')).filter(|name| !name.is_empty());
        container.names.extend(name.map(str::to_owned));
        if saved.state.running {
            let pid = Some(saved.state.pid);
            container.state = State::Listed { pid };
        }
        containers.push(container);
    }
    Ok(containers)
}
