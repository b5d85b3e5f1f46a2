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
    /// The pods whose traffic takes the link. Up is what they send, down what they receive.
    pub from: PodSelection,
    /// Only traffic to and from these; all traffic without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Peers>,
    /// The interface in the pod: that of the default route without it; `all` for each but
    /// lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub interface: Option<String>,
    /// Only packets that match, as the pod sends them, as in `udp dst port 53`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub filter: Option<String>,
    /// Options of the link, as in a `[[link]]` table: those of both directions, `up` and
    /// `down` for one, and `preset`.
    #[serde(default)]
    #[schemars(schema_with = "options_schema")]
    pub link: Map<String, Value>,
    /// The seed of random streams; 1 without it. Each pod has separate streams, which
    /// follow from this and from the names of Link and pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
    /// The name of a Scenario of the same namespace, which changes the link with time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub scenario: Option<String>,
    /// The start of the scenario (RFC 3339); without it, when the link of a pod was
    /// attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub start_at: Option<String>,
    /// The link that takes a packet which several links of a pod select: the one of the
    /// lowest priority, and of equal ones the oldest. 128 for a link with `to` or `filter`,
    /// and 255 for one of all traffic, without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The traffic's fate when the emulator is killed: `open` (the default) lets it pass
    /// without a link, `closed` stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<FailMode>,
}

/// The fate of a link's traffic when the emulator is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// It passes without a link.
    Open,
    /// It does not pass.
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

/// The state of a link: a slice of each node, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// The generation of the spec that the sums are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods that the link selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<i64>,
    /// Pods whose traffic takes the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<i64>,
    /// Frames that the link delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<i64>,
    /// Frames that the link dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<i64>,
    /// Failures of the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<i64>,
    /// The highest 99th percentile of lateness of any pod's link, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_us: Option<i64>,
    /// `Accepted`, `Attached` and `Faithful`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The slice of each node, which its agent writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Vec<NodeStatus>,
}

/// Options are checked by the node, which knows all models: the API server keeps them as
/// they are.
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
