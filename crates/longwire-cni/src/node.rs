//! Client of the node process.

use std::path::PathBuf;
use std::time::Duration;

use longwire_client::node::{ATTACHMENTS, AttachmentList, AttachmentView};
use longwire_client::{Address, Client, ClientError};
use longwire_io::run_directory;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Name of the node's socket in the run directory.
const SOCKET: &str = "node.sock";

/// Error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// The node does not answer.
    Unreachable(String),
    /// It refuses with this HTTP status.
    Refused(u16, String),
    /// It refuses the link's options.
    InvalidOptions(String),
}

impl NodeError {
    /// Returns the reason.
    pub fn reason(&self) -> &str {
        match self {
            NodeError::Unreachable(reason)
            | NodeError::Refused(_, reason)
            | NodeError::InvalidOptions(reason) => reason,
        }
    }
}

/// An attachment. Its spec may be of a later version.
pub(crate) type Attachment = AttachmentView<Value>;

/// Returns the namespace that an attachment targets; other targets are not this plugin's.
pub(crate) fn namespace(attachment: &Attachment) -> Option<PathBuf> {
    let path = attachment.spec["target"]["netns"].as_str();
    path.map(PathBuf::from)
}

/// Client of the node.
pub(crate) struct Node {
    client: Client,
    socket: PathBuf,
}

impl Node {
    /// Creates a client whose requests take at most `limit`. Connects lazily.
    pub fn new(socket: Option<PathBuf>, limit: Duration) -> Result<Node, NodeError> {
        let socket = socket.unwrap_or_else(default_socket);
        let client = Client::new(Address::Unix(socket.clone()), None);
        let mut client = client.map_err(|error| NodeError::Unreachable(error.to_string()))?;
        client.set_time_limit(limit);
        Ok(Node { client, socket })
    }

    /// Attaches a link, or changes an attached one.
    pub fn put(&mut self, name: &str, request: &Value) -> Result<(), NodeError> {
        let response = self.client.put(&path(name), request);
        response.map(drop).map_err(|error| self.error(error))
    }

    /// Removes a link, if it exists.
    pub fn delete(&mut self, name: &str) -> Result<(), NodeError> {
        match self.client.delete(&path(name)) {
            Ok(_) => Ok(()),
            Err(error) => match self.error(error) {
                NodeError::Refused(404, _) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Returns an attachment, if it exists.
    pub fn get(&mut self, name: &str) -> Result<Option<Attachment>, NodeError> {
        let response = self.client.get(&path(name));
        match response.map_err(|error| self.error(error)) {
            Ok(value) => self.parse(value).map(Some),
            Err(NodeError::Refused(404, _)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns all attachments.
    pub fn list(&mut self) -> Result<Vec<Attachment>, NodeError> {
        let response = self.client.get(ATTACHMENTS);
        let value = response.map_err(|error| self.error(error))?;
        let list: AttachmentList<Value> = self.parse(value)?;
        Ok(list.attachments)
    }

    /// Checks that the node answers.
    pub fn check_health(&mut self) -> Result<(), NodeError> {
        let response = self.client.get("/v1/health");
        response.map(drop).map_err(|error| self.error(error))
    }

    fn parse<T: DeserializeOwned>(&self, value: Value) -> Result<T, NodeError> {
        serde_json::from_value(value).map_err(|error| {
            let socket = self.socket.display();
            NodeError::Unreachable(format!("the server at {socket} is not a node: {error}"))
        })
    }

    fn error(&self, error: ClientError) -> NodeError {
        match error {
            // Problems are about options.
            ClientError::Refused(refusal) if !refusal.body.problems.is_empty() => {
                NodeError::InvalidOptions(refusal.line())
            }
            ClientError::Refused(refusal) => NodeError::Refused(refusal.status, refusal.body.error),
            ClientError::Unreachable { source, .. } => NodeError::Unreachable(format!(
                "no node answers at {}: {source}; start `longwire node` on this machine",
                self.socket.display()
            )),
            error => NodeError::Unreachable(error.to_string()),
        }
    }
}

/// Returns the default path of the node's socket.
fn default_socket() -> PathBuf {
    let directory = run_directory::own();
    directory
        .unwrap_or_else(|| PathBuf::from("/run/longwire"))
        .join(SOCKET)
}

/// Names need no escapes.
fn path(name: &str) -> String {
    format!("{ATTACHMENTS}/{name}")
}
