//! The resource `Link`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::selection::{Peers, PodSelection};
use super::status::{NodeStatus, conditions_schema, nodes_schema};

/// A link for the traffic of pods.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "longwire.dev",
    version = "v1alpha1",
    kind = "Link",
    namespaced,
    status = "LinkStatus",
    derive = "PartialEq",
    shortname = "lwl",
    category = "longwire",
    doc = "An emulated link for the traffic of pods: delay, loss, rate and other models.",
    printcolumn(name = "Pods", type_ = "integer", json_path = ".status.pods"),
    printcolumn(name = "Attached", type_ = "integer", json_path = ".status.attached"),
    printcolumn(name = "Carried", type_ = "integer", json_path = ".status.carried"),
    printcolumn(name = "Dropped", type_ = "integer", json_path = ".status.dropped"),
    printcolumn(name = "Artifacts", type_ = "integer", json_path = ".status.artifacts"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Accepted')].status"
    ),
    printcolumn(
        name = "Faithful",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Faithful')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Attached')].message",
        priority = "1"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.startAt) || has(self.scenario)")
    .message("startAt needs a scenario"))]
pub struct LinkSpec {
    /// Pods whose traffic takes the link. Direction up is what they send, down what they
    /// receive.
    pub from: PodSelection,
    /// Peers whose traffic takes the link; default: all traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Peers>,
    /// Interface in the pod; default: that of the default route; `all`: every interface
    /// except lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub interface: Option<String>,
    /// Packets that take the link, as sent by the pod, such as `udp dst port 53`; default:
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub filter: Option<String>,
    /// Link options, like in a `[[link]]` table: for both directions, `up` and `down` for
    /// one, and `preset`.
    #[serde(default)]
    #[schemars(schema_with = "options_schema")]
    pub link: Map<String, Value>,
    /// Seed of random streams; default: 1. Each pod has separate streams, derived from the
    /// seed and the names of Link and pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
    /// Name of a Scenario in this namespace that changes the link over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub scenario: Option<String>,
    /// Start of the scenario (RFC 3339); default: when the link of a pod was attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub start_at: Option<String>,
    /// Priority among links of a pod that select the same packet; the lowest value takes
    /// it, then the oldest Link. Default: 128 with `to` or `filter`, otherwise 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Traffic when the emulator is killed: `open` (default) bypasses the link, `closed` is
    /// blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<FailMode>,
}

/// Traffic of a link when the emulator is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// Bypasses the link.
    Open,
    /// Is blocked.
    Closed,
}

impl FailMode {
    /// Returns the value of the node's field `fail`.
    pub fn as_str(self) -> &'static str {
        match self {
            FailMode::Open => "open",
            FailMode::Closed => "closed",
        }
    }
}

/// State of a link: a slice of each node, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// Generation of the spec that the sums are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods selected by the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<i64>,
    /// Pods with an attached link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<i64>,
    /// Frames delivered by the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<i64>,
    /// Frames dropped by the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<i64>,
    /// Failures of the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<i64>,
    /// Maximum 99th percentile of lateness of the links, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_us: Option<i64>,
    /// `Accepted`, `Attached` and `Faithful`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// State on each node, written by its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Vec<NodeStatus>,
}

/// Schema of options. The node validates them; the API server accepts any.
pub(super) fn options_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Link options, like in a [[link]] table: for both directions, `up` and \
                        `down` for one, and `preset`.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

pub(super) fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "format": "date-time",
        "nullable": true,
        "description": "Start of the scenario (RFC 3339); default: when the link of a pod was \
                        attached.",
    })
}
