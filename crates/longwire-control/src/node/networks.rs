//! Networks of a node. Relays requests to their runs.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use longwire_client::node::{NETWORKS, NetworkEnded, NetworkSpec, NetworkView};
use longwire_client::time_limit::within;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::{read_head, take_permit};
use crate::guard::Caller;
use crate::limits::BusyGuard;
use crate::node::{Handlers, NodeApi, NodeRefusal, may_attach, path_of_run, target};
use crate::reply::{Body, Refusal, Reply};
use crate::route::Work;
use crate::stream;

/// Time limit for a run's response.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Networks of a node. Methods may be called from any thread.
pub trait Networks: Send + Sync {
    /// Returns all networks, ordered by name.
    fn list(&self) -> Vec<NetworkView>;

    /// Returns a network.
    fn get(&self, name: &str) -> Option<NetworkView>;

    /// Runs a network, replacing an existing one of the same name. Returns whether it is new.
    ///
    /// # Errors
    /// The refusal, in which case nothing has changed.
    fn put(&self, name: &str, spec: &NetworkSpec) -> Result<(bool, NetworkView), NodeRefusal>;

    /// Ends a network, if it exists.
    fn remove(&self, name: &str) -> Option<NetworkEnded>;

    /// Returns the control socket of a network's run; `None` if it is not running.
    fn socket(&self, name: &str) -> Option<PathBuf>;

    /// Returns the report of a network's last ended run.
    fn last_report(&self, name: &str) -> Option<Value>;
}

/// Permit for a relayed request, with the guard that protects its connection from eviction.
type RelayPermit = (OwnedSemaphorePermit, BusyGuard);

/// Relays a request to a run's control socket. Holds the permit until the end of the response.
async fn relay(
    socket: &Path,
    target: Uri,
    mut request: Request<Incoming>,
    held: RelayPermit,
) -> Result<Response<Body>, Refusal> {
    let away = |error: String| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error);
    let failed = |error: &dyn std::fmt::Display| {
        away(format!("the network's run does not respond: {error}"))
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
        // A failed connection also fails the response.
        tokio::spawn(async move { drop(connection.await) });
        let answered = sender.send_request(request).await;
        answered.map_err(|error| failed(&error))
    };
    let answered = within(ANSWER_TIME, exchange).await;
    let slow = || away("the network's run is waiting for other hosts".to_owned());
    let (head, body) = answered.ok_or_else(slow)??.into_parts();
    let body = RelayedBody { body, _held: held };
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Body of a relayed response; truncated if the run ends early.
struct RelayedBody {
    body: Incoming,
    _held: RelayPermit,
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

pub(super) const NETWORK: Handlers<NetworkSpec, NetworkView, NetworkEnded> = Handlers {
    example: "a network such as {\"file\": \"[ports]…\", \"host\": \"west\"}",
    get: |node, name| node.networks()?.get(name).ok_or_else(|| missing(name)),
    put: |node, name, spec| Ok(node.networks()?.put(name, spec)?),
    remove: |node, name| {
        let none = || NetworkEnded {
            name: name.to_owned(),
            report: None,
        };
        Ok(node.networks()?.remove(name).unwrap_or_else(none))
    },
};

impl NodeApi {
    /// Answers a request to a network's run. If it is not running, returns the report of its last
    /// run.
    pub(super) async fn in_network(
        self: Arc<NodeApi>,
        name: &str,
        rest: &str,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let networks = self.networks()?;
        let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
        if !is_reading {
            may_attach(&caller)?;
        }
        if let Some(socket) = networks.socket(name) {
            let path = path_of_run(rest);
            let (route, _) = read_head(request.method().as_str(), &path, request.uri().query())?;
            let place = match route.work {
                Work::Stream(_) => stream::take_permit(&self.streams)?,
                _ => take_permit(&self.work)?,
            };
            let held = (place, caller.slot.work());
            return relay(&socket, target(&path, &request)?, request, held).await;
        }
        let (name, is_report) = (name.to_owned(), is_reading && rest == "report");
        let reply = self.work(move |_| {
            if let Some(report) = networks.last_report(&name).filter(|_| is_report) {
                return Reply::json(&report);
            }
            let view = networks.get(&name).ok_or_else(|| missing(&name))?;
            let reason = view.reason.as_deref().unwrap_or("it is starting");
            let error = format!("the network is not running: {reason}");
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error))
        });
        Ok(reply.await?.into_response())
    }

    pub(super) fn networks(&self) -> Result<Arc<dyn Networks>, Refusal> {
        let networks = self.attachments.networks();
        networks.ok_or_else(|| Refusal::missing("this node does not run networks"))
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::missing(format!("no network '{name}'; GET {NETWORKS} lists all"))
}
