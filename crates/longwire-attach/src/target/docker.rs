//! Docker without its socket, by its container directory.
//!
//! `/var/lib/docker/containers/ID/config.v2.json` is the daemon's container
//! (`container.Container` of moby): `Name` with a leading slash, and `State` with `Pid`.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::container::{Container, Runtime, State};
use super::files::Directory;
use super::machine::Machine;
use super::place::Reading;

/// Container directory.
const CONTAINERS: &str = "/var/lib/docker/containers";

/// The fields of `config.v2.json` that are used.
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

/// Reads the container directory.
pub fn read(machine: &Machine) -> Reading {
    let path = machine.path(CONTAINERS);
    Reading {
        containers: read_containers(&path),
        path,
    }
}

fn read_containers(path: &Path) -> io::Result<Vec<Container>> {
    let directory = Directory::open(path)?;
    let mut containers = Vec::new();
    for id in directory.names()? {
        let Ok(saved) = directory.json::<ContainerFile>(&format!("{id}/config.v2.json")) else {
            continue;
        };
        let mut container = Container::new(Runtime::Docker, &id);
        let name = saved.name.trim_start_matches('/');
        container
            .names
            .extend((!name.is_empty()).then(|| name.to_owned()));
        container.state = if saved.state.running {
            State::Listed {
                pid: Some(saved.state.pid),
            }
        } else {
            State::Stopped
        };
        containers.push(container);
    }
    Ok(containers)
}
