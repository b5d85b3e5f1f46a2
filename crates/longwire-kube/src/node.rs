//! Client of the API of `longwire node`, over its Unix socket.

use std::io;
use std::iter::Sum;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use longwire_client::node::{ATTACHMENTS, NETWORKS};
use longwire_client::{Address, AsyncClient, ClientError, Method, ProblemBody, Refusal, node};
pub use node::{AttachmentState, NetworkState};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An attachment, whose specification may be of a later version.
pub type AttachmentView = node::AttachmentView<Value>;

/// A network, whose specification may be of a later version.
pub type NetworkView = node::NetworkView<Value>;

/// Time limit of a request; attaching a link takes about 100 ms.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Maximum length of a response, in bytes.
const RESPONSE_MAX: usize = 64 << 20;

/// Error of a request to a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node does not answer.
    #[error("no node at {}: {error}", socket.display())]
    Unavailable {
        /// Socket of the node.
        socket: PathBuf,
        /// Underlying error.
        error: String,
    },
    /// The request is invalid.
    #[error("{message}")]
    Refused {
        /// Error as a line.
        message: String,
        /// All problems.
        problems: Vec<ProblemBody>,
    },
    /// The name or the interface belongs to another attachment.
    #[error("{0}")]
    Conflict(String),
    /// The resource does not exist, or the node's version does not support its kind.
    #[error("{0}")]
    Missing(String),
    /// The node has failed, or the server is not a node.
    #[error("{0}")]
    Failed(String),
}

/// A client for one node.
#[derive(Clone, Debug)]
pub struct NodeClient {
    socket: PathBuf,
}

impl NodeClient {
    /// Creates a client for the node at a socket. It connects at the first request.
    pub fn new(socket: &Path) -> NodeClient {
        let socket = socket.to_owned();
        NodeClient { socket }
    }

    /// Returns all attachments.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn attachments(&self) -> Result<Vec<AttachmentView>, NodeError> {
        let list: node::AttachmentList<Value> =
            self.request(Method::GET, ATTACHMENTS, None).await?;
        Ok(list.attachments)
    }

    /// Returns all networks.
    ///
    /// # Errors
    /// See [`NodeError`]; `Missing` if the node's version does not support networks.
    pub async fn networks(&self) -> Result<Vec<NetworkView>, NodeError> {
        let list: node::NetworkList<Value> = self.request(Method::GET, NETWORKS, None).await?;
        Ok(list.networks)
    }

    /// Returns all networks; none if the node's version does not support networks.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn supported_networks(&self) -> Result<Vec<NetworkView>, NodeError> {
        match self.networks().await {
            Err(NodeError::Missing(_)) => Ok(Vec::new()),
            result => result,
        }
    }

    /// Creates an attachment, or changes the link of an existing one.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn put(&self, name: &str, body: &Value) -> Result<AttachmentView, NodeError> {
        let path = format!("{ATTACHMENTS}/{name}");
        self.request(Method::PUT, &path, Some(body)).await
    }

    /// Runs a network, replacing one of the same name.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn put_network(&self, name: &str, body: &Value) -> Result<NetworkView, NodeError> {
        let path = format!("{NETWORKS}/{name}");
        self.request(Method::PUT, &path, Some(body)).await
    }

    /// Removes an attachment or a network, selected by list and name, if it exists.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn delete(&self, list: &str, name: &str) -> Result<(), NodeError> {
        let path = format!("{list}/{name}");
        let _: Value = self.request(Method::DELETE, &path, None).await?;
        Ok(())
    }

    /// Returns the counters of a run, selected by list and name.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn counters(&self, list: &str, name: &str) -> Result<Counters, NodeError> {
        let stats = format!("{list}/{name}/stats");
        let stats: Value = self.request(Method::GET, &stats, None).await?;
        let report = format!("{list}/{name}/report");
        let report: Value = self.request(Method::GET, &report, None).await?;
        Ok(Counters::of_run(&stats, &report))
    }

    /// Sends a request and returns its response.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, NodeError> {
        let response = async {
            let mut client = AsyncClient::new(Address::Unix(self.socket.clone()), None)?;
            client.set_time_limit(TIME_LIMIT);
            client.set_response_max(RESPONSE_MAX);
            client.request(method, path, body).await
        };
        let value = response.await.map_err(|error| self.error(error))?;
        serde_json::from_value(value).map_err(|error| NodeError::Failed(format!("{path}: {error}")))
    }

    fn error(&self, error: ClientError) -> NodeError {
        let unavailable = |error| NodeError::Unavailable {
            socket: self.socket.clone(),
            error,
        };
        match error {
            ClientError::Refused(refusal) => refused(refusal),
            ClientError::Unreachable { source, .. } => unavailable(io::Error::to_string(&source)),
            ClientError::ConnectionLost { reason, .. } => unavailable(reason),
            ClientError::Timeout { .. } => unavailable("timed out".to_owned()),
            error => NodeError::Failed(error.to_string()),
        }
    }
}

fn refused(Refusal { status, body }: Refusal) -> NodeError {
    match (status, body.problems.is_empty()) {
        (404, _) => NodeError::Missing(body.error),
        (409, _) => NodeError::Conflict(body.error),
        (400, _) | (422, false) => NodeError::Refused {
            message: body.error,
            problems: body.problems,
        },
        _ => NodeError::Failed(body.error),
    }
}

/// Counters of a run, summed over its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Delivered frames.
    pub carried: u64,
    /// Dropped frames.
    pub dropped: u64,
    /// Artifacts of the emulator.
    pub artifacts: u64,
    /// Maximum over all ports of the 99th percentile of lateness, in microseconds.
    pub lateness_p99_us: u64,
}

impl Counters {
    /// Extracts the counters from a run's statistics and report. Missing fields count as 0.
    pub fn of_run(stats: &Value, report: &Value) -> Counters {
        let totals = &stats["totals"];
        let mut sum = Counters {
            carried: totals["packets_out"].as_u64().unwrap_or(0),
            dropped: total(&totals["drops"]),
            ..Counters::default()
        };
        for port in report["ports"].as_array().into_iter().flatten() {
            // Skip rows of hosts, which repeat a peer's counters and appear only in the final
            // report.
            let name = port["name"].as_str().unwrap_or_default();
            if !name.starts_with("host ") {
                sum.artifacts += total(&port["artifacts"]);
            }
            let late = port["lateness_us"]["p99"].as_f64().unwrap_or(0.0);
            sum.lateness_p99_us = sum.lateness_p99_us.max(late.ceil() as u64);
        }
        for peer in report["hosts"]["peers"].as_array().into_iter().flatten() {
            let count = |name: &str| peer[name].as_u64().unwrap_or(0);
            // An outage is an artifact in addition to the frames dropped with the reason
            // `port_lost`.
            let lost = [
                "frames_lost",
                "frames_unconfirmed",
                "frames_dropped",
                "outages",
            ];
            sum.artifacts += lost.iter().map(|name| count(name)).sum::<u64>();
        }
        sum
    }
}

impl Sum for Counters {
    /// Adds counters, taking the maximum lateness.
    fn sum<I: Iterator<Item = Counters>>(all: I) -> Counters {
        all.fold(Counters::default(), |sum, one| Counters {
            carried: sum.carried + one.carried,
            dropped: sum.dropped + one.dropped,
            artifacts: sum.artifacts + one.artifacts,
            lateness_p99_us: sum.lateness_p99_us.max(one.lateness_p99_us),
        })
    }
}

/// Sums an object's numbers.
fn total(counters: &Value) -> u64 {
    let fields = counters.as_object();
    let numbers = fields.into_iter().flatten().filter_map(|(_, n)| n.as_u64());
    numbers.sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn underlay_losses_are_artifacts() {
        let stats = json!({ "totals": { "packets_out": 90, "drops": { "loss": 4, "queue": 3 } } });
        let report = json!({ "ports": [
        { "name": "a", "artifacts": { "late": 1 }, "lateness_us": { "p99": 41.5 } },
        { "name": "host east", "artifacts": { "underlay_lost": 2 } },
    ], "hosts": { "peers": [
        { "name": "east", "frames_lost": 2, "frames_unconfirmed": 3, "outages": 1 },
    ] } });
        let expected = Counters {
            carried: 90,
            dropped: 7,
            artifacts: 7,
            lateness_p99_us: 42,
        };
        assert_eq!(Counters::of_run(&stats, &report), expected);
    }
}
