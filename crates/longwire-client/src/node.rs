//! Bodies of the node's API.
//!
//! Views are generic over their spec: a client that must read specs of later versions uses
//! `serde_json::Value`.

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
    /// Interface; that of the default route by default, `all` for all but lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Prefixes of remote addresses; all traffic by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Filter of sent packets in the language of `--filter`, such as `udp dst port 53`.
    /// Received packets match with source and destination exchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// `up` for packets that the namespace sends, `down` for those that it receives. The other
    /// direction bypasses the link.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_both")]
    pub direction: DirectionSpec,
    /// Of the attachments that select a packet, the one with the lowest priority gets it; the
    /// oldest wins ties. 128 by default with `to` or `filter`, else 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Traffic while the node is down: `open` bypasses the link; `closed` drops it if the node
    /// was killed.
    #[serde(default, skip_serializing_if = "FailSpec::is_open")]
    pub fail: FailSpec,
    /// Whether the target may be in the machine's own namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Options of the link, as a `[[link]]` table has them: for both directions, for `up` and
    /// `down`, and `preset`. Up is what the namespace sends.
    #[serde(default)]
    pub link: Map<String, Value>,
    /// Seed of all random streams; derived from the attachment's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether to accept a target that does not exist yet. Any target may disappear later and
    /// return.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whether options may name files, by absolute paths; true by default. Send `false` with
    /// options of a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub files: bool,
}

fn yes() -> bool {
    true
}

fn is_yes(flag: &bool) -> bool {
    *flag
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
    /// Returns whether it covers both directions.
    pub fn is_both(&self) -> bool {
        *self == DirectionSpec::Both
    }
}

/// Fate of traffic after the emulator was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailSpec {
    /// Bypasses the link.
    #[default]
    Open,
    /// Is dropped.
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
    /// Name of `ip netns`, or a path.
    Netns(PathBuf),
    /// PID of a process in the namespace.
    Pid(u32),
    /// Name, ID or prefix of an ID of a container; `docker:web` names the runtime too.
    Container(String),
    /// Pod of Kubernetes on this machine, such as `shop/cart-0`.
    Pod(String),
}

/// State of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// The link carries the interface's packets.
    Attached,
    /// The target or interface does not exist yet. Clients read unknown states as this one.
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
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it waits because another link or a network's port has the interface.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
    /// Description of the resolved target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Interfaces with a link.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Unix time of the start of its links, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// Number of times its links were attached again.
    #[serde(default)]
    pub returns: u64,
    /// Configuration.
    pub spec: S,
    /// Options of the last request that are valid and probably unintended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ProblemBody>,
}

impl<S> AttachmentView<S> {
    /// Returns whether its link carries packets.
    pub fn is_attached(&self) -> bool {
        self.state == AttachmentState::Attached
    }
}

/// All attachments.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AttachmentList")]
pub struct AttachmentList<S = AttachmentSpec> {
    /// Ordered by name.
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
    /// Number of attachments that wait.
    pub waiting: usize,
}

/// Health of a node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// Configuration of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Topology: its text, or its tables as an object, in which ports are numbered in the order
    /// of their names.
    pub file: Value,
    /// Host of the topology that this machine is, if the topology has hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Key of the hosts, instead of the one that the topology names: 64 hexadecimal digits.
    /// Never part of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Seed of all random streams, unless the topology has one; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the topology may name files and plugins, by absolute paths; true by default. Send
    /// `false` with the topology of a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub files: bool,
}

/// State of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkState {
    /// It carries frames.
    Running,
    /// Its process has started and waits for other hosts.
    Starting,
    /// It waits for the target of a port, or for its restart after a failure. Clients read
    /// unknown states as this one.
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
    /// Why it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// PID of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Unix time of the start of its run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// Number of restarts.
    #[serde(default)]
    pub restarts: u64,
    /// Configuration, without the key.
    pub spec: S,
    /// Values of the topology that are valid and probably unintended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ProblemBody>,
}

impl<S> NetworkView<S> {
    /// Returns whether it carries frames.
    pub fn is_running(&self) -> bool {
        self.state == NetworkState::Running
    }
}

/// All networks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NetworkList")]
pub struct NetworkList<S = NetworkSpec> {
    /// Ordered by name.
    pub networks: Vec<NetworkView<S>>,
}

/// Response to the removal of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnded {
    /// Name.
    pub name: String,
    /// Report of its last run, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
}
