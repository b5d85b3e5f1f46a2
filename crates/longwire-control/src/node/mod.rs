//! The API of a node: attachments come and go, and below each is the control API of its
//! run.

mod document;
mod network_api;
mod networks;
mod views;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Method, Request, Response, StatusCode, Uri};
use longwire_fabric::Controller;
use longwire_runtime::host::normal_priority;
use longwire_topology::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::api::{Api, WORK_MAX, fault, parse_body, take_place};
use crate::bodies::Bodies;
use crate::config::Detail;
use crate::guard::{Caller, Files, Peer, Rights};
use crate::metrics;
use crate::refusal::Refusal;
use crate::reply::{Body, Reply};
use crate::state::{ApiState, STREAMS_MAX};

pub use networks::{NetworkEnded, NetworkList, NetworkSpec, NetworkState, NetworkView, Networks};
pub use views::{
    AttachmentList, AttachmentSpec, AttachmentState, AttachmentView, Detached, DirectionSpec,
    FailSpec, Health, NodeOverview, TargetSpec,
};

/// The path of all attachments.
const ATTACHMENTS: &str = "/v1/attachments";

/// The path of all networks.
const NETWORKS: &str = "/v1/networks";

/// The attachments of a node. Everything may be called from any thread, and may take as
/// long as attaching takes.
pub trait Attachments: Send + Sync {
    /// Returns all, in the order of their names.
    fn list(&self) -> Vec<AttachmentView>;

    /// Returns one.
    fn get(&self, name: &str) -> Option<AttachmentView>;

    /// Makes an attachment, or changes the link of an existing one. Returns whether it is
    /// new.
    ///
    /// # Errors
    /// Why nothing was done.
    fn put(&self, name: &str, spec: &AttachmentSpec)
    -> Result<(bool, AttachmentView), NodeRefusal>;

    /// Removes an attachment; `None` if there is none of this name.
    fn remove(&self, name: &str) -> Option<Detached>;

    /// Returns the run of an attachment, while it has one.
    fn controller(&self, name: &str) -> Option<Arc<Controller>>;

    /// Returns the networks of the node; `None` if it runs none.
    fn networks(&self) -> Option<Arc<dyn Networks>> {
        None
    }
}

/// Why a request about an attachment is not done.
#[derive(Clone, Debug)]
pub enum NodeRefusal {
    /// It is wrong.
    Wrong(Vec<Problem>),
    /// There is an attachment of that name for another place, or at that interface.
    Conflict(String),
    /// The target does not exist, or no link can be attached to it.
    Failed(String),
    /// It cannot be stored.
    Storage {
        /// The error.
        reason: String,
        /// The disk or the quota is full.
        is_full: bool,
    },
}

impl NodeRefusal {
    /// Refuses `what`, which cannot be stored.
    pub fn storage(what: &str, error: &io::Error) -> NodeRefusal {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        NodeRefusal::Storage {
            reason: format!("{what} cannot be stored; nothing was changed: {error}"),
            is_full: matches!(error.kind(), StorageFull | QuotaExceeded),
        }
    }
}

impl fmt::Display for NodeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeRefusal::Wrong(problems) => {
                let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
                write!(f, "{}", problems.join("; "))
            }
            NodeRefusal::Conflict(reason)
            | NodeRefusal::Failed(reason)
            | NodeRefusal::Storage { reason, .. } => write!(f, "{reason}"),
        }
    }
}

impl From<NodeRefusal> for Refusal {
    fn from(error: NodeRefusal) -> Refusal {
        match error {
            NodeRefusal::Wrong(problems) => Refusal::problems(problems),
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

/// Answers requests to a node.
pub(crate) struct NodeApi {
    attachments: Arc<dyn Attachments>,
    bodies: Bodies,
    /// The APIs of runs that were asked for, by the attachment's name.
    runs: Mutex<HashMap<String, Arc<Api>>>,
    /// Places for requests that are worked on, and for streams, of all runs together: of
    /// each alone they would leave no connection for others.
    work: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    files: Files,
    stopped: watch::Receiver<bool>,
    slow: Handle,
}

/// The part of a path that says what a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About<'a> {
    Node,
    Health,
    Document,
    Metrics,
    All,
    One(&'a str),
    /// A path of the control API of this attachment's run.
    Run(&'a str, &'a str),
    Networks,
    Network(&'a str),
    /// A path of the control API of this network's run.
    NetworkRun(&'a str, &'a str),
}

fn about(path: &str) -> Option<About<'_>> {
    let below = |parent: &str| path.strip_prefix(parent)?.strip_prefix('/');
    match path {
        "/v1" => Some(About::Node),
        "/v1/health" => Some(About::Health),
        "/v1/openapi.json" => Some(About::Document),
        "/metrics" => Some(About::Metrics),
        ATTACHMENTS => Some(About::All),
        NETWORKS => Some(About::Networks),
        _ => match (below(ATTACHMENTS), below(NETWORKS)) {
            (Some(rest), _) => named(rest, About::One, About::Run),
            (_, Some(rest)) => named(rest, About::Network, About::NetworkRun),
            _ => None,
        },
    }
}

/// Reads a name, and what is below it.
fn named<'a>(
    rest: &'a str,
    one: impl Fn(&'a str) -> About<'a>,
    run: impl Fn(&'a str, &'a str) -> About<'a>,
) -> Option<About<'a>> {
    match rest.split_once('/') {
        None if rest.is_empty() => None,
        None => Some(one(rest)),
        Some((name, rest)) if !name.is_empty() && !rest.is_empty() => Some(run(name, rest)),
        Some(_) => None,
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

    /// Answers a request that was let in.
    pub(crate) async fn answer(
        self: Arc<NodeApi>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Response<Body> {
        let answered = self.handle(request, caller).await;
        answered.unwrap_or_else(Refusal::into_response)
    }

    async fn handle(
        self: Arc<NodeApi>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let about = about(&path).ok_or_else(|| {
            Refusal::missing("there is no such path; GET /v1/openapi.json lists them")
        })?;
        match about {
            About::Run(name, rest) => return self.in_run(name, rest, request, caller).await,
            About::NetworkRun(name, rest) => {
                return self.in_network(name, rest, request, caller).await;
            }
            _ => {}
        }
        let takes: &[&str] = match about {
            About::One(_) | About::Network(_) => &["GET", "PUT", "DELETE"],
            _ => &["GET"],
        };
        let is_head = request.method() == Method::HEAD;
        if !is_head && !takes.contains(&request.method().as_str()) {
            return Err(Refusal::method(takes));
        }
        let reply = match about {
            About::One(name) => self.of_one(name, request, &caller).await?,
            About::Health => Reply::json(&Health {
                status: "ok".to_owned(),
            })?,
            About::Document => Reply::json(&document::document())?,
            About::Metrics => {
                let accepts = request.headers().get_all(ACCEPT).iter();
                let accepts: Vec<&str> = accepts.filter_map(|value| value.to_str().ok()).collect();
                let accepts = accepts.join(",");
                self.work(move |node| node.metrics(&accepts)).await?
            }
            About::All => {
                let list = |node: &NodeApi| {
                    Reply::json(&AttachmentList {
                        attachments: node.attachments.list(),
                    })
                };
                self.work(list).await?
            }
            About::Networks | About::Network(_) => {
                self.of_networks(about, request, &caller).await?
            }
            About::Node | About::Run(..) | About::NetworkRun(..) => {
                self.work(NodeApi::overview).await?
            }
        };
        Ok(reply.into_response())
    }

    /// Answers a request about an attachment.
    async fn of_one(
        self: Arc<NodeApi>,
        name: &str,
        request: Request<Incoming>,
        caller: &Caller,
    ) -> Result<Reply, Refusal> {
        let name = name.to_owned();
        match *request.method() {
            Method::PUT => self.put(name, request, caller).await,
            Method::DELETE => {
                may_attach(caller)?;
                let remove = move |node: &NodeApi| match node.attachments.remove(&name) {
                    Some(detached) => Reply::json(&detached),
                    None => Reply::json(&Detached {
                        name,
                        ..Detached::default()
                    }),
                };
                self.work(remove).await
            }
            _ => {
                let get = move |node: &NodeApi| match node.attachments.get(&name) {
                    Some(view) => Reply::json(&view),
                    None => Err(missing(&name)),
                };
                self.work(get).await
            }
        }
    }

    /// Works on a thread that may wait.
    async fn work(
        self: Arc<NodeApi>,
        work: impl FnOnce(&NodeApi) -> Result<Reply, Refusal> + Send + 'static,
    ) -> Result<Reply, Refusal> {
        let places = Arc::clone(&self.work);
        let _place = take_place(&places)?;
        let worked = spawn_blocking(move || {
            normal_priority();
            work(&self)
        });
        worked.await.unwrap_or_else(|_| Err(fault()))
    }

    async fn put(
        self: Arc<NodeApi>,
        name: String,
        request: Request<Incoming>,
        caller: &Caller,
    ) -> Result<Reply, Refusal> {
        may_attach(caller)?;
        let body = self.bodies.read(request.into_body()).await?;
        self.work(move |node| {
            let spec = spec(&parse_body(&body.bytes)?)?;
            let (is_new, view) = node.attachments.put(&name, &spec)?;
            let status = if is_new {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            json(status, &view)
        })
        .await
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
            let _place = take_place(&self.work)?;
            spawn_blocking(move || node.run(&owned)).await
        };
        let api = api.map_err(|_| fault())?.ok_or_else(|| missing(name))?;
        let path = path_of_run(rest);
        *request.uri_mut() = target(&path, &request)?;
        Ok(api.answer(request, caller).await)
    }

    /// Returns the API of an attachment's run.
    fn run(&self, name: &str) -> Option<Arc<Api>> {
        let controller = self.attachments.controller(name);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // Runs that ended are not kept alive by requests about others.
        runs.retain(|name, api| {
            let present = self.attachments.controller(name);
            present.is_some_and(|present| api.is_of(&present))
        });
        let controller = controller?;
        let api = runs.entry(name.to_owned()).or_insert_with(|| {
            let stopped = self.stopped.clone();
            let state = ApiState::new(controller, Detail::Each, stopped, self.slow.clone());
            let state = state.with_streams(Arc::clone(&self.streams));
            let api = Api::new(Arc::new(state), self.files.clone());
            Arc::new(api.with_work(Arc::clone(&self.work)))
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
    let target = target.parse();
    target.map_err(|_| Refusal::bad("the path is not one of a URL"))
}

/// Refuses clients that may not attach. Over TCP none may: a target is any container of
/// the machine, and options name any file.
fn may_attach(caller: &Caller) -> Result<(), Refusal> {
    let refused = |error| Err(Refusal::new(StatusCode::FORBIDDEN, error));
    match (caller.peer, caller.rights) {
        (Peer::Tcp(_), _) => refused(
            "attachments and networks are made and removed, and networks changed, over the Unix \
             socket of the node; over TCP they are read, and the links of attachments changed",
        ),
        (_, Rights::Read) => refused("this token may read only; nothing was changed"),
        (Peer::Unix, Rights::Change) => Ok(()),
    }
}

fn spec(body: &Value) -> Result<AttachmentSpec, Refusal> {
    AttachmentSpec::deserialize(body).map_err(|error| {
        Refusal::bad(format!(
            "the body is no attachment, as in {{\"target\": {{\"container\": \"web\"}}, \
             \"link\": {{\"delay\": \"80ms\"}}}}: {error}"
        ))
    })
}

fn json(status: StatusCode, value: &impl Serialize) -> Result<Reply, Refusal> {
    let reply = Reply::json(value)?;
    Ok(Reply { status, ..reply })
}

fn missing(name: &str) -> Refusal {
    Refusal::missing(format!(
        "there is no attachment '{name}', or its target does not exist now; GET {ATTACHMENTS} \
         lists them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_an_attachment_are_those_of_its_run() {
        for (path, found) in [
            ("/v1/attachments", Some(About::All)),
            ("/v1/attachments/web", Some(About::One("web"))),
            (
                "/v1/attachments/web/links/a",
                Some(About::Run("web", "links/a")),
            ),
            ("/v1/attachments/", None),
            ("/v1/attachments/web/", None),
            ("/v1/attachments//links", None),
            ("/v1/attachmentsweb", None),
            ("/v1/networks", Some(About::Networks)),
            ("/v1/networks/mesh", Some(About::Network("mesh"))),
            (
                "/v1/networks/mesh/stats",
                Some(About::NetworkRun("mesh", "stats")),
            ),
            ("/v1/networks/", None),
            ("/v1/links", None),
        ] {
            assert_eq!(about(path), found, "{path}");
        }
    }
}
