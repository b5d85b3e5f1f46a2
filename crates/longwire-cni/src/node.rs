//! The node process, over its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longwire_control::Address;
use longwire_control::client::{Client, ClientError};
use longwire_io::run_directory;
use serde::Deserialize;
use serde_json::Value;

/// The name of the node's socket in the run directory.
const SOCKET: &str = "node.sock";

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// The node does not answer.
    Away(String),
    /// It refuses: the status of HTTP, and the reason.
    Refused(u16, String),
    /// It refuses the link's options.
    Wrong(String),
}

impl NodeError {
    /// Returns the reason alone.
    pub fn reason(&self) -> &str {
        match self {
            NodeError::Away(reason) | NodeError::Refused(_, reason) | NodeError::Wrong(reason) => {
                reason
            }
        }
    }
}

/// An attachment of the node.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeAttachment {
    pub name: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub interfaces: Vec<String>,
    #[serde(default)]
    pub spec: NodeSpec,
}

/// The place of an attachment as it was wanted.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeSpec {
    #[serde(default)]
    pub target: NodeTarget,
}

/// A target; only namespaces are this plugin's.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeTarget {
    #[serde(default)]
    pub netns: Option<PathBuf>,
}

/// All attachments.
#[derive(Debug, Deserialize)]
struct NodeList {
    attachments: Vec<NodeAttachment>,
}

/// A connection to the node.
pub(crate) struct Node {
    client: Client,
    socket: PathBuf,
}

impl Node {
    /// A connection for requests that take at most `limit` each. Nothing is sent yet.
    pub fn new(socket: Option<PathBuf>, limit: Duration) -> Result<Node, NodeError> {
        let socket = socket.unwrap_or_else(default_socket);
        let client = Client::new(Address::Unix(socket.clone()), None);
        let mut client = client.map_err(|error| NodeError::Away(error.to_string()))?;
        client.set_time_limit(limit);
        Ok(Node { client, socket })
    }

    /// Attaches a link, or changes the one that is attached.
    pub fn put(&mut self, name: &str, request: &Value) -> Result<(), NodeError> {
        let done = self.client.put(&path_of(name), request);
        done.map(drop).map_err(|error| failure(&self.socket, error))
    }

    /// Removes a link, if it exists.
    pub fn delete(&mut self, name: &str) -> Result<(), NodeError> {
        match self.client.delete(&path_of(name)) {
            Ok(_) => Ok(()),
            Err(error) => match failure(&self.socket, error) {
                NodeError::Refused(404, _) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Returns an attachment, if it exists.
    pub fn get(&mut self, name: &str) -> Result<Option<NodeAttachment>, NodeError> {
        let answer = self.client.get(&path_of(name));
        match answer.map_err(|error| failure(&self.socket, error)) {
            Ok(value) => self.understand(value).map(Some),
            Err(NodeError::Refused(404, _)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns all attachments.
    pub fn list(&mut self) -> Result<Vec<NodeAttachment>, NodeError> {
        let answer = self.client.get("/v1/attachments");
        let value = answer.map_err(|error| failure(&self.socket, error))?;
        let list: NodeList = self.understand(value)?;
        Ok(list.attachments)
    }

    /// Asks whether the node answers.
    pub fn check_health(&mut self) -> Result<(), NodeError> {
        let answer = self.client.get("/v1/health");
        answer
            .map(drop)
            .map_err(|error| failure(&self.socket, error))
    }

    fn understand<T: for<'a> Deserialize<'a>>(&self, value: Value) -> Result<T, NodeError> {
        serde_json::from_value(value).map_err(|error| {
            let socket = self.socket.display();
            NodeError::Away(format!("the answer at {socket} is no node's: {error}"))
        })
    }
}

/// Returns the path of the node's socket where no other is configured.
fn default_socket() -> PathBuf {
    let directory = run_directory::own();
    directory
        .unwrap_or_else(|| PathBuf::from("/run/longwire"))
        .join(SOCKET)
}

/// Names need no escapes.
fn path_of(name: &str) -> String {
    format!("/v1/attachments/{name}")
}

fn failure(socket: &Path, error: ClientError) -> NodeError {
    match error {
        ClientError::Refused(refused) => {
            let text = refused.body.error.clone();
            // 400 and 422 with the places of the mistakes are about options.
            if refused.body.problems.is_empty() {
                NodeError::Refused(refused.status, text)
            } else {
                let problems = refused.body.problems.iter();
                let problems: Vec<String> = problems.map(ToString::to_string).collect();
                NodeError::Wrong(problems.join("; "))
            }
        }
        ClientError::Nobody { reason, .. } => NodeError::Away(format!(
            "no node process answers at {}: {reason}; `longwire node` must run on this machine",
            socket.display()
        )),
        error => NodeError::Away(error.to_string()),
    }
}
