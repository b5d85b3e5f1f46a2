//! Networks that a node runs: bodies, and requests to their runs.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use longwire_topology::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use super::NodeRefusal;
use super::views::{is_yes, yes};
use crate::places::Working;
use crate::refusal::Refusal;
use crate::reply::Body;
use crate::time_limit::within;

/// The longest time until the run answers.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The networks of a node. Everything may be called from any thread.
pub trait Networks: Send + Sync {
    /// Returns all, in the order of their names.
    fn list(&self) -> Vec<NetworkView>;

    /// Returns one.
    fn get(&self, name: &str) -> Option<NetworkView>;

    /// Runs a network, in place of one of the same name. Returns whether it is new.
    ///
    /// # Errors
    /// Why nothing was done.
    fn put(&self, name: &str, spec: &NetworkSpec) -> Result<(bool, NetworkView), NodeRefusal>;

    /// Ends a network; `None` if there is none of this name.
    fn remove(&self, name: &str) -> Option<NetworkEnded>;

    /// Returns the control socket of a network's run, while it runs.
    fn socket(&self, name: &str) -> Option<PathBuf>;

    /// Returns the report of a network's last run that has ended.
    fn last_report(&self, name: &str) -> Option<Value>;
}

/// A network that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// The topology: its text, or its tables as an object, in which ports are numbered in
    /// the order of their names.
    pub file: Value,
    /// The host of the topology that this machine is, if it has hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The key of the hosts, in place of the one that the file names: 64 hexadecimal digits.
    /// Answers leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The seed of every random stream, unless the topology has one; 1 if there is none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the topology may name files and plugins, by absolute paths; true without it. Send
    /// `false` with the topology of a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub files: bool,
}

/// The state of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// It carries frames.
    Running,
    /// It is started, and waits for other hosts.
    Starting,
    /// It does not run, and is started again: a target of a port does not exist, or its run
    /// has failed.
    Waiting,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: NetworkState,
    /// Why it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The process of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Unix time of the start of its run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// How often its run was started again after it had ended.
    pub restarts: u64,
    /// The network as it is wanted, without its key.
    pub spec: NetworkSpec,
    /// Valid values of the topology that are probably not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// All networks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkList {
    /// In the order of their names.
    pub networks: Vec<NetworkView>,
}

/// The end of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnded {
    /// Its name.
    pub name: String,
    /// The report of its last run, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
}

/// The place of a request that is passed on. Its connection does not give way meanwhile.
pub(super) struct HeldPlace {
    pub _place: OwnedSemaphorePermit,
    pub _working: Working,
}

/// Passes a request on to the run at a control socket, and its answer back; its place is
/// held until the answer has ended.
pub(super) async fn relay(
    socket: &Path,
    target: Uri,
    mut request: Request<Incoming>,
    held: HeldPlace,
) -> Result<Response<Body>, Refusal> {
    let away = |error: String| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error);
    let failed = |error: &dyn std::fmt::Display| {
        away(format!("the run of the network does not answer: {error}"))
    };
    *request.uri_mut() = target;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.remove(AUTHORIZATION);
    let exchange = async {
        let stream = UnixStream::connect(socket).await;
        let stream = stream.map_err(|error| failed(&error))?;
        let (mut sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        // Its errors are those of the answer.
        tokio::spawn(async move { drop(connection.await) });
        let answered = sender.send_request(request).await;
        answered.map_err(|error| failed(&error))
    };
    let answered = within(ANSWER_TIME, exchange).await;
    let slow = || away("the run of the network waits for its other hosts".to_owned());
    let (head, body) = answered.ok_or_else(slow)??.into_parts();
    let body = RelayedBody { body, _held: held };
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// The body of a run's answer; cut short if the run ends.
struct RelayedBody {
    body: Incoming,
    _held: HeldPlace,
}

impl HttpBody for RelayedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| Some(Ok(frame?.ok()?)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
