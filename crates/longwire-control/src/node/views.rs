//! The bodies of requests and answers about attachments.

use std::path::PathBuf;

use longwire_topology::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An attachment that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentSpec {
    /// Its place.
    pub target: TargetSpec,
    /// The interface: that of the default route if there is none here; `all` for each
    /// but lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Only packets to and from these prefixes; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Only packets that match, as the namespace sends them; of those that it receives, the
    /// ones that match with source and destination exchanged. The language is that of
    /// `--filter`, as in `udp dst port 53`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Only what the namespace sends (`up`) or receives (`down`); the other direction passes
    /// without a link.
    #[serde(default, skip_serializing_if = "DirectionSpec::is_both")]
    pub direction: DirectionSpec,
    /// Where several attachments of an interface select a packet, the one of the lowest
    /// priority has it, and of equal ones the oldest. 128 with `to` or `filter`, and 255
    /// without, if there is none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The traffic's fate while the node does not run: `open` lets it pass without a link,
    /// `closed` lets nothing of it pass if the node was killed.
    #[serde(default, skip_serializing_if = "FailSpec::is_open")]
    pub fail: FailSpec,
    /// Whether the target may share the network of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Options of the link as in a `[[link]]` table: those of both directions, `up` and
    /// `down` for one, and `preset`. Up is what the interface's namespace sends.
    #[serde(default)]
    pub link: Map<String, Value>,
    /// The seed of every random stream; without one, it follows from the attachment's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the attachment waits for a target that does not exist yet. Without this, it
    /// must exist at first, and may go and return later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whether options may name files, by absolute paths; true without it. Send `false`
    /// with the options of a user who must not read the node's files.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub files: bool,
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn is_yes(flag: &bool) -> bool {
    *flag
}

/// The directions of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DirectionSpec {
    /// Frames that the interface's namespace sends and receives.
    #[default]
    Both,
    /// Sent frames alone.
    Up,
    /// Received frames alone.
    Down,
}

impl DirectionSpec {
    /// Whether it is both directions.
    pub fn is_both(&self) -> bool {
        *self == DirectionSpec::Both
    }
}

/// The fate of traffic whose emulator was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailSpec {
    /// It passes without a link.
    #[default]
    Open,
    /// It does not pass.
    Closed,
}

impl FailSpec {
    /// Whether the traffic passes.
    pub fn is_open(&self) -> bool {
        *self == FailSpec::Open
    }
}

/// The place of an attachment: one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetSpec {
    /// A name of `ip netns`, or a path.
    Netns(PathBuf),
    /// The network namespace of this process.
    Pid(u32),
    /// A container: a name, an ID or its start, as in `docker:web` where several runtimes
    /// have one of that name.
    Container(String),
    /// A pod of Kubernetes on this machine, as in `shop/cart-0`.
    Pod(String),
}

/// The state of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// Its link carries the interface's packets.
    Attached,
    /// Its target or interface does not exist; the link is attached once it does.
    Waiting,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: AttachmentState,
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it waits because another link, or a port of a network, has the interface.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
    /// A description of the target that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The interfaces with a link.
    pub interfaces: Vec<String>,
    /// Unix time of the start of its links, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix: Option<u64>,
    /// How often its links were attached again.
    pub returns: u64,
    /// The attachment as it is wanted.
    pub spec: AttachmentSpec,
    /// Valid options that are probably not meant, of the last request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// All attachments.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentList {
    /// In the order of their names.
    pub attachments: Vec<AttachmentView>,
}

/// The end of an attachment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Detached {
    /// Its name.
    pub name: String,
    /// Frames that entered its links, in both directions.
    pub packets_in: u64,
    /// Frames that left them.
    pub packets_out: u64,
    /// Frames that its links lost.
    pub dropped: u64,
    /// Frames that were on its links at the end.
    pub in_flight: u64,
}

/// The node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverview {
    /// The version of Longwire.
    pub version: String,
    /// How many attachments there are.
    pub attachments: usize,
    /// How many of them wait.
    pub waiting: usize,
}

/// The node works.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}
