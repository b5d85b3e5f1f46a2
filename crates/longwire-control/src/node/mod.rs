//! API of a node: attachments, each with the control API of its run.

mod document;
mod networks;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, Uri};
use longwire_client::node::{
    ATTACHMENTS, AttachmentList, AttachmentSpec, AttachmentState, AttachmentView, Detached, Health,
    NetworkList, NodeOverview,
};
use longwire_network::Controller;
use longwire_runtime::host::normal_priority;
use longwire_topology::Problem;
pub use networks::Networks;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::api::{Api, WORK_MAX, accepted, fault, parse_body, take_permit};
use crate::config::Detail;
use crate::guard::{Caller, Files, Peer, Rights};
use crate::limits::Bodies;
use crate::metrics;
use crate::node::networks::NETWORK;
use crate::reply::{Body, Refusal, Reply};
use crate::state::{ApiState, STREAMS_MAX};

/// Attachments of a node. Methods may be called from any thread, and block while a link is being
/// attached.
pub trait Attachments: Send + Sync {
    /// Returns all attachments, ordered by name.
    fn list(&self) -> Vec<AttachmentView>;

    /// Returns an attachment.
    fn get(&self, name: &str) -> Option<AttachmentView>;

    /// Creates an attachment, or changes the link of an existing one. Returns whether it is new.
    ///
    /// # Errors
    /// The refusal, in which case nothing has changed.
    fn put(&self, name: &str, spec: &AttachmentSpec)
    -> Result<(bool, AttachmentView), NodeRefusal>;

    /// Removes an attachment, if it exists.
    fn remove(&self, name: &str) -> Option<Detached>;

    /// Returns the run of an attachment; `None` if it has none.
    fn controller(&self, name: &str) -> Option<Arc<Controller>>;

    /// Returns the networks of the node; `None` if it supports none.
    fn networks(&self) -> Option<Arc<dyn Networks>> {
        None
    }
}

/// Reason for refusing a request to a node.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NodeRefusal {
    /// The request is invalid.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    /// The name or the interface belongs to another attachment.
    #[error("{0}")]
    Conflict(String),
    /// The target does not exist, or cannot have a link.
    #[error("{0}")]
    Failed(String),
    /// The node's state cannot be stored.
    #[error("{reason}")]
    Storage {
        /// Underlying error.
        reason: String,
        /// Whether the disk or the quota is full.
        is_full: bool,
    },
}

impl NodeRefusal {
    /// Returns the refusal of a request to store `what`.
    pub fn storage(what: &str, error: &io::Error) -> NodeRefusal {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        NodeRefusal::Storage {
            reason: format!("cannot store {what}; nothing was changed: {error}"),
            is_full: matches!(error.kind(), StorageFull | QuotaExceeded),
        }
    }
}

impl From<NodeRefusal> for Refusal {
    fn from(error: NodeRefusal) -> Refusal {
        match error {
            NodeRefusal::Invalid(problems) => Refusal::problems(problems),
            NodeRefusal::Conflict(error) => Refusal::conflict(error),
            NodeRefusal::Failed(error) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error),
            NodeRefusal::Storage {
                reason,
                is_full: true,
            } => Refusal::new(StatusCode::INSUFFICIENT_STORAGE, reason),
            NodeRefusal::Storage { reason, .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
            }
        }
    }
}

/// Handler of a node's requests.
pub(crate) struct NodeApi {
    attachments: Arc<dyn Attachments>,
    bodies: Bodies,
    /// APIs of runs that have received requests, by attachment.
    runs: Mutex<HashMap<String, Arc<Api>>>,
    /// Permits for requests and streams, shared by all runs, because each run alone could use all
    /// connections.
    work: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    files: Files,
    stopped: watch::Receiver<bool>,
    slow: Handle,
}

/// Whether a resource is new, and its view.
type Made<V> = Result<(bool, V), Refusal>;

/// Handlers for attachments or for networks.
struct Handlers<S, V, R> {
    /// Name of the body in messages, with an example.
    example: &'static str,
    get: fn(&NodeApi, &str) -> Result<V, Refusal>,
    put: fn(&NodeApi, &str, &S) -> Made<V>,
    remove: fn(&NodeApi, &str) -> Result<R, Refusal>,
}

const ATTACHMENT: Handlers<AttachmentSpec, AttachmentView, Detached> = Handlers {
    example: "an attachment such as {\"target\": {\"container\": \"web\"}, \
              \"link\": {\"delay\": \"80ms\"}}",
    get: |node, name| node.attachments.get(name).ok_or_else(|| missing(name)),
    put: |node, name, spec| Ok(node.attachments.put(name, spec)?),
    remove: |node, name| {
        let none = || Detached {
            name: name.to_owned(),
            ..Detached::default()
        };
        Ok(node.attachments.remove(name).unwrap_or_else(none))
    },
};

/// Resource that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource<'a> {
    Node,
    Health,
    Document,
    Metrics,
    All,
    One(&'a str),
    /// Path in the control API of an attachment's run.
    Run(&'a str, &'a str),
    Networks,
    Network(&'a str),
    /// Path in the control API of a network's run.
    NetworkRun(&'a str, &'a str),
}

fn resource(path: &str) -> Option<Resource<'_>> {
    let segments: Vec<&str> = path.splitn(5, '/').collect();
    if segments.iter().skip(1).any(|segment| segment.is_empty()) {
        return None;
    }
    match segments[..] {
        ["", "v1"] => Some(Resource::Node),
        ["", "v1", "health"] => Some(Resource::Health),
        ["", "v1", "openapi.json"] => Some(Resource::Document),
        ["", "metrics"] => Some(Resource::Metrics),
        ["", "v1", "attachments"] => Some(Resource::All),
        ["", "v1", "attachments", name] => Some(Resource::One(name)),
        ["", "v1", "attachments", name, rest] => Some(Resource::Run(name, rest)),
        ["", "v1", "networks"] => Some(Resource::Networks),
        ["", "v1", "networks", name] => Some(Resource::Network(name)),
        ["", "v1", "networks", name, rest] => Some(Resource::NetworkRun(name, rest)),
        _ => None,
    }
}

impl NodeApi {
    pub(crate) fn new(
        attachments: Arc<dyn Attachments>,
        files: Files,
        stopped: watch::Receiver<bool>,
        slow: Handle,
    ) -> NodeApi {
        NodeApi {
            attachments,
            bodies: Bodies::new(),
            runs: Mutex::default(),
            work: Arc::new(Semaphore::new(WORK_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            files,
            stopped,
            slow,
        }
    }

    /// Answers an admitted request.
    pub(crate) async fn answer(
        self: Arc<NodeApi>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let resource = resource(&path)
            .ok_or_else(|| Refusal::missing("no such path; GET /v1/openapi.json lists all"))?;
        let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
        let reply = match resource {
            Resource::Run(name, rest) => return self.in_run(name, rest, request, caller).await,
            Resource::NetworkRun(name, rest) => {
                return self.in_network(name, rest, request, caller).await;
            }
            Resource::One(name) => self.of_one(name, request, &caller, ATTACHMENT).await?,
            Resource::Network(name) => self.of_one(name, request, &caller, NETWORK).await?,
            _ if !is_reading => return Err(Refusal::method(&["GET"])),
            Resource::Health => Reply::json(&Health {
                status: "ok".to_owned(),
            })?,
            Resource::Document => Reply::json(&document::document())?,
            Resource::Metrics => {
                let accepts = accepted(request.headers());
                self.work(move |node| node.metrics(&accepts)).await?
            }
            Resource::All => self.work(NodeApi::all_attachments).await?,
            Resource::Networks => self.work(NodeApi::all_networks).await?,
            Resource::Node => self.work(NodeApi::overview).await?,
        };
        Ok(reply.into_response())
    }

    /// Answers a request for one attachment or network.
    async fn of_one<
        S: DeserializeOwned + 'static,
        V: Serialize + 'static,
        R: Serialize + 'static,
    >(
        self: Arc<NodeApi>,
        name: &str,
        request: Request<Incoming>,
        caller: &Caller,
        kind: Handlers<S, V, R>,
    ) -> Result<Reply, Refusal> {
        let name = name.to_owned();
        match *request.method() {
            Method::GET | Method::HEAD => {
                let get = move |node: &NodeApi| Reply::json(&(kind.get)(node, &name)?);
                return self.work(get).await;
            }
            Method::PUT | Method::DELETE => may_attach(caller)?,
            _ => return Err(Refusal::method(&["GET", "PUT", "DELETE"])),
        }
        if request.method() == Method::DELETE {
            let remove = move |node: &NodeApi| Reply::json(&(kind.remove)(node, &name)?);
            return self.work(remove).await;
        }
        let body = self.bodies.read(request.into_body()).await?;
        self.work(move |node| {
            let spec = S::deserialize(&parse_body(&body.bytes)?).map_err(|error| {
                Refusal::bad(format!("the body is not {}: {error}", kind.example))
            })?;
            let (is_new, view) = (kind.put)(node, &name, &spec)?;
            let mut reply = Reply::json(&view)?;
            if is_new {
                reply.status = StatusCode::CREATED;
            }
            Ok(reply)
        })
        .await
    }

    /// Runs work on a thread that may block.
    async fn work(
        self: Arc<NodeApi>,
        work: impl FnOnce(&NodeApi) -> Result<Reply, Refusal> + Send + 'static,
    ) -> Result<Reply, Refusal> {
        let places = Arc::clone(&self.work);
        let _place = take_permit(&places)?;
        let worked = spawn_blocking(move || {
            normal_priority();
            work(&self)
        });
        worked.await.unwrap_or_else(|_| Err(fault()))
    }

    fn all_attachments(&self) -> Result<Reply, Refusal> {
        let attachments = self.attachments.list();
        Reply::json(&AttachmentList { attachments })
    }

    fn all_networks(&self) -> Result<Reply, Refusal> {
        let networks = self.networks()?.list();
        Reply::json(&NetworkList { networks })
    }

    fn overview(&self) -> Result<Reply, Refusal> {
        let all = self.attachments.list();
        let waiting = |view: &&AttachmentView| view.state == AttachmentState::Waiting;
        Reply::json(&NodeOverview {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attachments: all.len(),
            waiting: all.iter().filter(waiting).count(),
        })
    }

    fn metrics(&self, accept: &str) -> Result<Reply, Refusal> {
        let all = self.attachments.list();
        let runs = all.into_iter().filter_map(|view| {
            let controller = self.attachments.controller(&view.name)?;
            Some((view.name, controller))
        });
        let runs: Vec<_> = runs.collect();
        metrics::of_attachments(&runs, accept)
    }

    /// Answers a request to the run of an attachment.
    async fn in_run(
        self: Arc<NodeApi>,
        name: &str,
        rest: &str,
        mut request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let (node, owned) = (Arc::clone(&self), name.to_owned());
        let api = {
            let _place = take_permit(&self.work)?;
            spawn_blocking(move || node.run(&owned)).await
        };
        let api = api.map_err(|_| fault())?.ok_or_else(|| missing(name))?;
        *request.uri_mut() = target(&path_of_run(rest), &request)?;
        api.answer(request, caller).await
    }

    /// Returns the API of an attachment's run.
    fn run(&self, name: &str) -> Option<Arc<Api>> {
        let controller = self.attachments.controller(name);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop the APIs of ended runs.
        runs.retain(|name, api| {
            let present = self.attachments.controller(name);
            present.is_some_and(|present| api.is_of(&present))
        });
        let controller = controller?;
        let api = runs.entry(name.to_owned()).or_insert_with(|| {
            let stopped = self.stopped.clone();
            let state = ApiState {
                streams: Arc::clone(&self.streams),
                ..ApiState::new(controller, Detail::Each, stopped, self.slow.clone())
            };
            let work = Arc::clone(&self.work);
            Arc::new(Api::new(Arc::new(state), self.files.clone(), work))
        });
        Some(Arc::clone(api))
    }
}

/// Returns the path in the control API of a run.
fn path_of_run(rest: &str) -> String {
    match rest {
        "metrics" => "/metrics".to_owned(),
        "run" => "/v1".to_owned(),
        rest => format!("/v1/{rest}"),
    }
}

/// Returns a path with the query of a request.
fn target(path: &str, request: &Request<Incoming>) -> Result<Uri, Refusal> {
    let target = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    target.parse().map_err(|_| Refusal::bad("invalid path"))
}

/// Refuses clients without permission to attach. TCP clients never have it, because a target can be
/// any container of the machine, and options can name any file.
fn may_attach(caller: &Caller) -> Result<(), Refusal> {
    let refused = |error| Err(Refusal::new(StatusCode::FORBIDDEN, error));
    match (caller.peer, caller.rights) {
        (Peer::Tcp(_), _) => refused(
            "over TCP, clients can read attachments and networks, and change the links of \
             attachments; for other changes, use the node's Unix socket",
        ),
        (_, Rights::Read) => refused("read-only token; nothing was changed"),
        (Peer::Unix, Rights::Change) => Ok(()),
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::missing(format!(
        "no attachment '{name}', or its target does not exist; GET {ATTACHMENTS} lists all"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_an_attachment_are_those_of_its_run() {
        for (path, found) in [
            ("/v1/attachments", Some(Resource::All)),
            ("/v1/attachments/web", Some(Resource::One("web"))),
            (
                "/v1/attachments/web/links/a",
                Some(Resource::Run("web", "links/a")),
            ),
            ("/v1/attachments/", None),
            ("/v1/attachments/web/", None),
            ("/v1/attachments//links", None),
            ("/v1/attachmentsweb", None),
            ("/v1/networks", Some(Resource::Networks)),
            ("/v1/networks/mesh", Some(Resource::Network("mesh"))),
            (
                "/v1/networks/mesh/stats",
                Some(Resource::NetworkRun("mesh", "stats")),
            ),
            ("/v1/networks/", None),
            ("/v1/links", None),
        ] {
            assert_eq!(resource(path), found, "{path}");
        }
    }
}
