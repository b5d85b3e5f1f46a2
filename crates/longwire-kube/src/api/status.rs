//! The slice of a node in the status of a resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The state of a resource on one node. Only the agent of the node writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The name of the node.
    pub node: String,
    /// The generation of the spec that the agent applied.
    #[serde(default)]
    pub observed_generation: i64,
    /// Pods of the node that the resource selects.
    #[serde(default)]
    pub pods: i64,
    /// Pods whose link is attached.
    #[serde(default)]
    pub attached: i64,
    /// Pods whose link waits.
    #[serde(default)]
    pub waiting: i64,
    /// Frames that the links delivered.
    #[serde(default)]
    pub carried: i64,
    /// Frames that the links dropped.
    #[serde(default)]
    pub dropped: i64,
    /// Failures of the emulator.
    #[serde(default)]
    pub artifacts: i64,
    /// The highest 99th percentile of lateness of any link, in microseconds.
    #[serde(default)]
    pub lateness_p99_us: i64,
    /// The reason for which a pod has no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// A sentence about the reason, or a note about the spec if there is no reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The pointer (RFC 6901) from `spec` to the value that the message is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The remedy for a refused value or a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The reason for which a pod has no link.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Reason {
    /// The pod or its interface does not exist yet.
    Waiting,
    /// The link selects peers, and none has an address.
    NoPeers,
    /// The pod has the network of its machine.
    HostNetwork,
    /// Another link, or a port of a Network, has the interface.
    Conflict,
    /// The node's emulator does not answer.
    NodeUnavailable,
    /// The emulator could not attach the link.
    Failed,
    /// The spec is wrong.
    Refused,
}

/// The schema of a list of slices: a map by node, so that each agent owns its entry.
pub(super) fn nodes_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<NodeStatus>>::json_schema(generator), "node")
}

/// The schema of a list of conditions: a map by type.
pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<Condition>>::json_schema(generator), "type")
}

/// Makes a list a map with this key, which server-side apply merges entry by entry.
pub(super) fn map_of(mut list: Schema, key: &str) -> Schema {
    list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".to_owned(), json!([key]));
    list
}
