//! Docker and Podman, through their API sockets.
//!
//! `GET /containers/json?all=true` lists containers, and `GET /containers/ID/json` has the PID
//! (Docker Engine API; Podman serves the same paths, `pkg/api/server/register_containers.go`).
//! Paths are unversioned: Docker 29 rejects the oldest API versions, and older versions of Docker
//! reject the newer ones. Podman's responses have the header `Libpod-API-Version`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longwire_client::{Address, Client, ClientError, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::container::{Container, Place, PlaceState, Reading, Runtime, State};
use super::files::invalid;
use super::machine::Machine;
use super::name::{self, PodName};
use super::process::verify;

/// Sockets of engines run by root.
const SOCKETS: [&str; 3] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
];

/// Sockets of rootless engines, relative to `$XDG_RUNTIME_DIR`.
const USER_SOCKETS: [&str; 2] = ["docker.sock", "podman/podman.sock"];

/// Environment variables that hold an engine's address (docker(1), podman(1)).
const VARIABLES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Header that identifies Podman.
const PODMAN_HEADER: &str = "libpod-api-version";

/// An engine with an API socket.
#[derive(Clone, Debug)]
pub struct Engine {
    /// The socket.
    pub socket: PathBuf,
    /// The user who runs a rootless engine.
    pub user: Option<u32>,
}

/// An entry of the container list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContainerRow {
    id: String,
    /// Names, each with a leading slash.
    #[serde(default)]
    names: Option<Vec<String>>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContainerDetails {
    state: InspectedState,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedState {
    #[serde(default)]
    pid: u32,
}

/// Returns this machine's engines, and the addresses that cannot be used.
pub fn engines(machine: &Machine) -> (Vec<Engine>, Vec<Place>) {
    let (mut engines, mut others) = (Vec::new(), Vec::new());
    for variable in VARIABLES {
        let Some(address) = machine.variable(variable) else {
            continue;
        };
        let Some(path) = address.strip_prefix("unix://") else {
            // Another machine's processes have no namespace on this one.
            let reason = format!("{variable} is not the address of a local socket");
            others.push(Place {
                path: PathBuf::from(address),
                state: PlaceState::Failed(reason),
            });
            continue;
        };
        let user = owner(Path::new(path)).unwrap_or_default();
        engines.push(Engine {
            socket: PathBuf::from(path),
            user: (user != 0).then_some(user),
        });
    }
    engines.extend(SOCKETS.map(|socket| Engine {
        socket: machine.path(socket),
        user: None,
    }));
    for directory in machine.user_directories() {
        engines.extend(USER_SOCKETS.map(|socket| Engine {
            socket: directory.path.join(socket),
            user: directory.user,
        }));
    }
    // One socket may have several paths: `/var/run` is a link to `/run`, and Podman's socket may
    // have Docker's name.
    let mut seen: Vec<PathBuf> = Vec::new();
    engines.retain(|engine| {
        let path = fs::canonicalize(&engine.socket).unwrap_or(engine.socket.clone());
        let is_new = !seen.contains(&path);
        seen.push(path);
        is_new
    });
    (engines, others)
}

impl Engine {
    /// Lists the containers. Running containers have no PID in the list.
    pub fn read(&self) -> Reading {
        Reading::of(self.socket.clone(), |_| self.containers())
    }

    fn containers(&self) -> io::Result<Vec<Container>> {
        let response = get(&self.socket, "/containers/json?all=true")?;
        let runtime = if response.headers.contains_key(PODMAN_HEADER) {
            Runtime::Podman
        } else {
            Runtime::Docker
        };
        let rows: Vec<ContainerRow> = parse(&response.body)?;
        let rows = rows.into_iter().filter(|row| match self.user {
            None => name::check(&row.id).is_ok(),
            Some(_) => name::is_full_id(&row.id),
        });
        Ok(rows.map(|row| self.container(runtime, row)).collect())
    }

    fn container(&self, runtime: Runtime, row: ContainerRow) -> Container {
        let mut container = Container::new(runtime, &row.id);
        container.user = self.user;
        let names = row.names.unwrap_or_default();
        let names = names.iter().map(|name| name.trim_start_matches('/'));
        // Names with an inner slash belong to legacy links.
        container
            .names
            .extend(names.filter(|name| !name.contains('/')).map(str::to_owned));
        if matches!(row.state.as_str(), "running" | "paused") {
            container.state = State::Listed { pid: None };
        }
        // Labels set by cri-dockerd.
        let labels = row.labels.unwrap_or_default();
        let label = |name: &str| labels.get(name).cloned();
        if let (Some(name), Some(namespace)) = (
            label("io.kubernetes.pod.name"),
            label("io.kubernetes.pod.namespace"),
        ) {
            container.pod = Some(PodName { namespace, name });
            let kind = label("io.kubernetes.docker.type");
            container.is_sandbox = kind.is_some_and(|kind| kind == "podsandbox");
        }
        container
    }

    /// Returns a container's state, with its PID.
    ///
    /// # Errors
    /// The engine does not answer or no longer has the container.
    pub fn state(&self, container: &Container, machine: &Machine) -> io::Result<State> {
        let target = format!("/containers/{}/json", container.id);
        let inspected: ContainerDetails = parse(&get(&self.socket, &target)?.body)?;
        let pid = inspected.state.pid;
        Ok(verify(machine, container, pid, self.is_trusted()))
    }

    /// Returns whether root or this user runs the engine. Another user's engine might report a
    /// third user's process.
    fn is_trusted(&self) -> bool {
        owner(&self.socket)
            .is_ok_and(|owner| owner == 0 || owner == nix::unistd::geteuid().as_raw())
    }
}

fn owner(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.uid())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    serde_json::from_slice(body).map_err(|error| invalid(format!("unknown response: {error}")))
}

/// Request timeout, including the connection: the accept queue of a hung engine may be full.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum response size in bytes. A list of 1,000 containers has about 2 MB.
const RESPONSE_MAX: usize = 32 << 20;

/// Sends a GET request over a Unix socket.
///
/// # Errors
/// Socket errors; `TimedOut`; `InvalidData` for a status other than 200.
fn get(path: &Path, target: &str) -> io::Result<Response> {
    let response = Client::new(Address::Unix(path.to_owned()), None).and_then(|mut client| {
        client.set_time_limit(TIME_LIMIT);
        client.set_response_max(RESPONSE_MAX);
        client.fetch(target)
    });
    Err(match response {
        Ok(response) if response.status == 200 => return Ok(response),
        Ok(response) => invalid(format!("status {}", response.status)),
        Err(ClientError::System(error) | ClientError::Unreachable { source: error, .. }) => error,
        Err(ClientError::Timeout { limit, .. }) => {
            let what = format!("no answer within {} s", limit.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, what)
        }
        Err(ClientError::Protocol { reason, .. } | ClientError::ConnectionLost { reason, .. }) => {
            invalid(reason)
        }
        Err(error) => invalid(error.to_string()),
    })
}
