//! Requests to a node.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::views::{
    AttachmentList, AttachmentView, Counters, NetworkList, NetworkView, Problem, Refusal,
};

/// The longest time of a request; attaching takes some 100 ms.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of an answer.
const ANSWER_MAX: usize = 64 << 20;

/// A failed request to a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node does not answer.
    #[error("no node at {}: {error}", socket.display())]
    Unavailable {
        /// Its socket.
        socket: PathBuf,
        /// The error.
        error: String,
    },
    /// The request is wrong.
    #[error("{message}")]
    Refused {
        /// The error in one line.
        message: String,
        /// Everything that is wrong.
        problems: Vec<Problem>,
    },
    /// There is an attachment of that name for another place, or at that interface.
    #[error("{0}")]
    Conflict(String),
    /// There is no such thing, or the node's version does not have it.
    #[error("{0}")]
    Missing(String),
    /// The node failed, or answered with something else.
    #[error("{0}")]
    Failed(String),
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeClient {
    socket: PathBuf,
}

impl NodeClient {
    /// The node at a socket. No connection is made yet.
    pub fn new(socket: &Path) -> NodeClient {
        NodeClient {
            socket: socket.to_owned(),
        }
    }

    /// Returns all attachments.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn attachments(&self) -> Result<Vec<AttachmentView>, NodeError> {
        let list: AttachmentList = self.ask(Method::GET, "/v1/attachments", None).await?;
        Ok(list.attachments)
    }

    /// Makes an attachment, or changes the link of an existing one.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn put(&self, name: &str, body: &Value) -> Result<AttachmentView, NodeError> {
        self.ask(Method::PUT, &format!("/v1/attachments/{name}"), Some(body))
            .await
    }

    /// Removes an attachment; one that does not exist is no error.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn delete(&self, name: &str) -> Result<(), NodeError> {
        let path = format!("/v1/attachments/{name}");
        let _: Value = self.ask(Method::DELETE, &path, None).await?;
        Ok(())
    }

    /// Returns the counters of an attachment's run.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn counters(&self, name: &str) -> Result<Counters, NodeError> {
        self.counters_of(&format!("/v1/attachments/{name}")).await
    }

    /// Returns all networks.
    ///
    /// # Errors
    /// See [`NodeError`]; `Missing` if the node's version has no networks.
    pub async fn networks(&self) -> Result<Vec<NetworkView>, NodeError> {
        let list: NetworkList = self.ask(Method::GET, "/v1/networks", None).await?;
        Ok(list.networks)
    }

    /// Runs a network, in place of one of the same name.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn put_network(&self, name: &str, body: &Value) -> Result<NetworkView, NodeError> {
        let path = format!("/v1/networks/{name}");
        self.ask(Method::PUT, &path, Some(body)).await
    }

    /// Ends a network; one that does not exist is no error.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn delete_network(&self, name: &str) -> Result<(), NodeError> {
        let path = format!("/v1/networks/{name}");
        let _: Value = self.ask(Method::DELETE, &path, None).await?;
        Ok(())
    }

    /// Returns the counters of a network's run.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn network_counters(&self, name: &str) -> Result<Counters, NodeError> {
        self.counters_of(&format!("/v1/networks/{name}")).await
    }

    async fn counters_of(&self, run: &str) -> Result<Counters, NodeError> {
        let stats: Value = self.ask(Method::GET, &format!("{run}/stats"), None).await?;
        let report: Value = self
            .ask(Method::GET, &format!("{run}/report"), None)
            .await?;
        Ok(Counters::of_run(&stats, &report))
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, NodeError> {
        let exchange = self.exchange(method, path, body);
        let exchanged = timeout(TIMEOUT, exchange).await;
        let (status, answer) = exchanged
            .map_err(|_| self.unavailable("no answer in time"))?
            .map_err(|error| self.unavailable(error))?;
        if status.is_success() {
            return serde_json::from_slice(&answer)
                .map_err(|error| NodeError::Failed(format!("{path}: {error}")));
        }
        let refusal: Refusal = serde_json::from_slice(&answer).unwrap_or_default();
        let message = match refusal.error.as_str() {
            "" => status.to_string(),
            error => error.to_owned(),
        };
        Err(match status {
            StatusCode::NOT_FOUND => NodeError::Missing(message),
            StatusCode::CONFLICT => NodeError::Conflict(message),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
                if !refusal.problems.is_empty() || status == StatusCode::BAD_REQUEST =>
            {
                NodeError::Refused {
                    message,
                    problems: refusal.problems,
                }
            }
            _ => NodeError::Failed(message),
        })
    }

    fn unavailable(&self, error: impl ToString) -> NodeError {
        NodeError::Unavailable {
            socket: self.socket.clone(),
            error: error.to_string(),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<(StatusCode, Bytes)> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "node")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX);
            let body = body.collect().await.map_err(io::Error::other);
            Ok::<_, hyper::Error>((status, body.map(|body| body.to_bytes())))
        };
        tokio::pin!(connection, answer);
        // The connection works while the answer is awaited.
        let answered = tokio::select! {
            answered = &mut answer => answered,
            ended = &mut connection => match ended {
                Ok(()) => answer.await,
                Err(error) => Err(error),
            },
        };
        let (status, body) = answered.map_err(io::Error::other)?;
        Ok((status, body?))
    }
}
