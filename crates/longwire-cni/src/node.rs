//! Client of the node process.

use std::path::PathBuf;
use std::time::Duration;

use longwire_client::node::{ATTACHMENTS, AttachmentList, AttachmentView};
use longwire_client::{Address, Client, ClientError};
use longwire_io::run_directory;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Name of the node's socket within the run directory.
const SOCKET: &str = "node.sock";

/// Error of a request to the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// The node does not answer.
    Unreachable(String),
    /// The node refuses the request with this HTTP status.
    Refused(u16, String),
    /// The node refuses the link options.
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

/// An attachment, whose specification may be of a later version.
pub(crate) type Attachment = AttachmentView<Value>;

/// Returns the target namespace of an attachment; `None` for other targets, which do not come from
/// this plugin.
pub(crate) fn namespace(attachment: &Attachment) -> Option<PathBuf> {
    let path = attachment.spec["target"]["netns"].as_str();
    path.map(PathBuf::from)
}

pub(crate) struct Node(Client);

impl Node {
    /// Creates a client with a time limit for requests. It connects at the first request.
    pub fn new(socket: Option<PathBuf>, limit: Duration) -> Result<Node, NodeError> {
        let socket = socket.unwrap_or_else(default_socket);
        let client = Client::new(Address::Unix(socket), None);
        let mut client = client.map_err(|error| NodeError::Unreachable(error.to_string()))?;
        client.set_time_limit(limit);
        Ok(Node(client))
    }

    /// Attaches a link, or changes one that is attached.
    pub fn put(&mut self, name: &str, request: &Value) -> Result<(), NodeError> {
        let response = self.0.put(&path(name), request);
        response.map(drop).map_err(|error| self.error(error))
    }

    /// Removes a link if it exists.
    pub fn delete(&mut self, name: &str) -> Result<(), NodeError> {
        let response = self.0.delete(&path(name));
        match response.map_err(|error| self.error(error)) {
            Ok(_) | Err(NodeError::Refused(404, _)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns an attachment if it exists.
    pub fn get(&mut self, name: &str) -> Result<Option<Attachment>, NodeError> {
        let response = self.0.get(&path(name));
        match response.map_err(|error| self.error(error)) {
            Ok(value) => self.parse(value).map(Some),
            Err(NodeError::Refused(404, _)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns all attachments.
    pub fn list(&mut self) -> Result<Vec<Attachment>, NodeError> {
        let response = self.0.get(ATTACHMENTS);
        let value = response.map_err(|error| self.error(error))?;
        let list: AttachmentList<Value> = self.parse(value)?;
        Ok(list.attachments)
    }

    /// Checks that the node answers.
    pub fn check_health(&mut self) -> Result<(), NodeError> {
        let response = self.0.get("/v1/health");
        response.map(drop).map_err(|error| self.error(error))
    }

    fn parse<T: DeserializeOwned>(&self, value: Value) -> Result<T, NodeError> {
        serde_json::from_value(value).map_err(|error| {
            let socket = self.0.address();
            NodeError::Unreachable(format!("the server at {socket} is not a node: {error}"))
        })
    }

    fn error(&self, error: ClientError) -> NodeError {
        match error {
            // Problems refer to options.
            ClientError::Refused(refusal) if !refusal.body.problems.is_empty() => {
                NodeError::InvalidOptions(refusal.line())
            }
            ClientError::Refused(refusal) => NodeError::Refused(refusal.status, refusal.body.error),
            ClientError::Unreachable { source, .. } => NodeError::Unreachable(format!(
                "no node answers at {}: {source}; start `longwire node` on this machine",
                self.0.address()
            )),
            error => NodeError::Unreachable(error.to_string()),
        }
    }
}

/// Returns the default path of the node's socket.
fn default_socket() -> PathBuf {
    run_directory::own()
        .unwrap_or_else(|| PathBuf::from("/run/longwire"))
        .join(SOCKET)
}

/// Returns the path of an attachment, whose name needs no escapes.
fn path(name: &str) -> String {
    format!("{ATTACHMENTS}/{name}")
}

/// Prefix of all attachment names.
const PREFIX: &str = "cni-";
/// Maximum number of characters from the network's name in an attachment name.
const NETWORK_MAX: usize = 12;
/// Maximum number of characters from a container's ID; tools abbreviate it to this length.
const CONTAINER_MAX: usize = 13;

/// Returns the name of an attachment: at most 63 letters, digits, '.', '_' and '-', such as
/// `cni-pods-3fa9c0ffee123-eth0-`, followed by hashes of the network and the attachment.
pub(crate) fn name_of(network: &str, container: &str, interface: &str) -> String {
    let own = number(&[network, container, interface]);
    let label = |text: &str, max| -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let kept = text.chars().map(|c| if is_plain(c) { c } else { '_' });
        kept.take(max).collect()
    };
    format!(
        "{PREFIX}{}-{}-{}-{:08x}{own:08x}",
        label(network, NETWORK_MAX),
        label(container, CONTAINER_MAX),
        label(interface, usize::MAX),
        number(&[network]),
    )
}

/// Returns whether a name belongs to an attachment of this network.
pub(crate) fn is_of_network(name: &str, network: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .and_then(|name| name.rsplit('-').next());
    numbers.is_some_and(|numbers| {
        numbers.len() == 16 && numbers.starts_with(&format!("{:08x}", number(&[network])))
    })
}

/// Returns the 32-bit FNV-1a hash of texts separated by 0xff. Must not change between versions.
fn number(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_the_same() {
        // Runtimes may refer to attachments created by earlier versions of the plugin.
        let name = name_of("pods", "3fa9c0ffee1234567890", "eth0");
        assert_eq!(name, "cni-pods-3fa9c0ffee123-eth0-6cccd2360e708fe4");
        assert!(is_of_network(&name, "pods"));
        assert!(!is_of_network(&name, "pod"));
        assert!(!is_of_network("web-eth0", "pods"));
    }

    #[test]
    fn names_are_file_names_and_differ() {
        let long = "x".repeat(100);
        let texts = [
            ("a-b/ü", &*long, "eth0"),
            ("a-b/u", &long, "eth0"),
            ("a-b/u", &long[1..], "eth0"),
            ("a-b/u", &long, "longest-name-15"),
        ];
        let names = texts.map(|(network, container, interface)| {
            let name = name_of(network, container, interface);
            assert!(name.len() <= 64, "{name}");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            assert!(name.chars().all(is_plain), "{name}");
            assert!(is_of_network(&name, network), "{name}");
            name
        });
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
    }
}
