//! CRI-O and Podman, by the directories of their common library `containers/storage`.
//!
//! `RUNROOT/DRIVER-containers/ID/userdata/pidfile` has the PID, and
//! `GRAPHROOT/DRIVER-containers/containers.json` the names. `config.json` is in the first
//! directory (CRI-O) or the second (Podman, `bundlePath` of libpod). The roots are those of
//! `containers-storage.conf(5)`; rootless Podman uses `$XDG_RUNTIME_DIR/containers`.
//!
//! Recent versions of CRI-O run most sandboxes without a process (`drop_infra_ctr`). They
//! are listed as stopped, and the pod is found by another of its containers.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::container::{Container, Runtime, State};
use super::files::Directory;
use super::machine::Machine;
use super::name::is_full_id;
use super::oci::Configuration;
use super::place::Reading;

/// Directory of running containers.
const RUN_ROOT: &str = "/run/containers/storage";

/// Directory of all containers of root.
const GRAPH_ROOT: &str = "/var/lib/containers/storage";

/// Suffix of the drivers' directories, such as `overlay-containers`.
const DRIVER_SUFFIX: &str = "-containers";

/// Container lists; the second is of containers that do not survive a reboot.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];

/// A row of [`LISTS`].
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

/// Names of containers by ID.
type Names = BTreeMap<String, Vec<String>>;

/// Reads the directories of root and all users.
pub fn read(machine: &Machine) -> Vec<Reading> {
    let users = machine.user_directories().into_iter();
    let users = users.map(|directory| (directory.path.join("containers"), directory.user));
    std::iter::once((machine.path(RUN_ROOT), None))
        .chain(users)
        .map(|(path, user)| Reading {
            containers: read_root(machine, &path, user),
            path,
        })
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
        // A rootless graph root is in the user's home.
        let graph = user
            .is_none()
            .then(|| machine.path(GRAPH_ROOT).join(&driver));
        let graph = graph.and_then(|graph| Directory::open(&graph).ok());
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
                container.state = match directory.number("pidfile") {
                    Ok(pid) => State::Listed { pid: Some(pid) },
                    Err(_) => State::Stopped,
                };
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
    let runtime = configuration.manager().unwrap_or(Runtime::Podman);
    let mut container = Container::new(runtime, id);
    configuration.apply(&mut container);
    container
}

fn names(directories: &[Option<&Directory>; 2]) -> Names {
    let directories = directories.iter().flatten();
    let lists =
        directories.flat_map(|directory| LISTS.map(|list| directory.json::<Vec<Row>>(list)));
    lists
        .flatten()
        .flatten()
        .map(|row| (row.id, row.names))
        .collect()
}
