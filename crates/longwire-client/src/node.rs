//! Bodies of the node's API.
//!
//! Views are generic over their specification: clients that must read specifications of later
//! versions use `serde_json::Value`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ProblemBody;

/// Path of the attachments.
pub const ATTACHMENTS: &str = "/v1/attachments";

/// Path of the networks.
pub const NETWORKS: &str = "/v1/networks";

/// Configuration of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentSpec {
    /// Network namespace.
    pub target: TargetSpec,
    /// Interface; by default that of the default route; `all` for all interfaces except lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Prefixes of remote addresses; all traffic by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Filter for sent packets in the language of `--filter`, such as `udp dst port 53`. For
    /// received packets, source and destination are swapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// `up` for packets sent by the namespace, `down` for packets that it receives. The other
    /// direction bypasses the link.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_both")]
    pub direction: DirectionSpec,
    /// Priority among the attachments that select a packet: the lowest number gets it, and ties go
    /// to the oldest. By default 128 with `to` or `filter`, otherwise 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Treatment of traffic while the node is down: `open` bypasses the link; `closed` drops it if
    /// the node was killed.
    #[serde(default, skip_serializing_if = "FailSpec::is_open")]
    pub fail: FailSpec,
    /// Whether the target may be the machine's own namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Options of the link, as in a `[[link]]` table: for both directions, in `up` and `down`, and
    /// `preset`. Up is the direction of packets sent by the namespace.
    #[serde(default)]
    pub link: Map<String, Value>,
    /// Seed of all random streams; derived from the attachment's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the target may be missing at first. Any target may disappear later and return.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whether options may name files, by absolute paths; true by default. Send `false` if the
    /// options come from a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    pub files: bool,
}

fn yes() -> bool {
    true
}

/// Directions of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirectionSpec {
    /// Both directions.
    #[default]
    Both,
    /// Packets that the namespace sends.
    Up,
    /// Packets that the namespace receives.
    Down,
}

impl DirectionSpec {
    /// Returns whether this covers both directions.
    pub fn is_both(&self) -> bool {
        *self == DirectionSpec::Both
    }
}

/// Treatment of traffic after the emulator was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailSpec {
    /// Traffic bypasses the link.
    #[default]
    Open,
    /// Traffic is dropped.
    Closed,
}

impl FailSpec {
    /// Returns whether traffic bypasses the link.
    pub fn is_open(&self) -> bool {
        *self == FailSpec::Open
    }
}

/// Network namespace of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetSpec {
    /// Name in `ip netns`, or a path.
    Netns(PathBuf),
    /// PID of a process in the namespace.
    Pid(u32),
    /// Name, ID or ID prefix of a container; `docker:web` also selects the runtime.
    Container(String),
    /// Kubernetes pod on this machine, such as `shop/cart-0`.
    Pod(String),
}

/// State of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// The link carries the interface's packets.
    Attached,
    /// The target or interface does not exist yet. Clients read unknown states as `waiting`.
    #[serde(other)]
    Waiting,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AttachmentView")]
pub struct AttachmentView<S = AttachmentSpec> {
    /// Name.
    pub name: String,
    /// State.
    pub state: AttachmentState,
    /// Reason for waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it waits because the interface belongs to another link or a network's port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
    /// Description of the resolved target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Interfaces with a link.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Unix time at which its links were attached, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// Number of times that its links were attached again.
    #[serde(default)]
    pub returns: u64,
    /// Configuration.
    pub spec: S,
    /// Values in the last request that are valid but probably unintended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ProblemBody>,
}

impl<S> AttachmentView<S> {
    /// Returns whether the attachment's link carries packets.
    pub fn is_attached(&self) -> bool {
        self.state == AttachmentState::Attached
    }
}

/// All attachments.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AttachmentList")]
pub struct AttachmentList<S = AttachmentSpec> {
    /// Attachments, ordered by name.
    pub attachments: Vec<AttachmentView<S>>,
}

/// Response to the removal of an attachment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Detached {
    /// Name.
    pub name: String,
    /// Frames that entered its links, in both directions.
    pub packets_in: u64,
    /// Frames that its links delivered.
    pub packets_out: u64,
    /// Frames that its links dropped.
    pub dropped: u64,
    /// Frames in flight at the end.
    pub in_flight: u64,
}

/// Overview of a node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverview {
    /// Version of Longwire.
    pub version: String,
    /// Number of attachments.
    pub attachments: usize,
    /// Number of waiting attachments.
    pub waiting: usize,
}

/// Health of a node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
}

/// Configuration of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Topology as text, or its tables as an object; in an object, ports are numbered in the order
    /// of their names.
    pub file: Value,
    /// Host of the topology that this machine runs, if the topology has hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Key of the hosts, instead of the one named by the topology: 64 hexadecimal digits. Never
    /// part of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Seed of all random streams, unless the topology has one; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the topology may name files and plugins, by absolute paths; true by default. Send
    /// `false` if the topology comes from a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    pub files: bool,
}

/// State of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// The network carries frames.
    Running,
    /// The process has started, and is waiting for other hosts.
    Starting,
    /// The network is waiting for the target of a port, or for its restart after a failure. Clients
    /// read unknown states as `waiting`.
    #[serde(other)]
    Waiting,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NetworkView")]
pub struct NetworkView<S = NetworkSpec> {
    /// Name.
    pub name: String,
    /// State.
    pub state: NetworkState,
    /// Reason why the network is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// PID of the network's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Unix time at which the network's run started, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// Number of restarts.
    #[serde(default)]
    pub restarts: u64,
    /// Configuration, without the key.
    pub spec: S,
    /// Values in the topology that are valid but probably unintended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ProblemBody>,
}

impl<S> NetworkView<S> {
    /// Returns whether the network carries frames.
    pub fn is_running(&self) -> bool {
        self.state == NetworkState::Running
    }
}

/// All networks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NetworkList")]
pub struct NetworkList<S = NetworkSpec> {
    /// Networks, ordered by name.
    pub networks: Vec<NetworkView<S>>,
}

/// Response to the removal of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnded {
    /// Name.
    pub name: String,
    /// Report of the network's last run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
}
