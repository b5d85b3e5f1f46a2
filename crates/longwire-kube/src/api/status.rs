//! Slice of a node in the status of a resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// State of a resource on one node, written by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Name of the node.
    pub node: String,
    /// Generation of the spec that the agent applied.
    #[serde(default)]
    pub observed_generation: i64,
    /// Pods of the node selected by the resource.
    #[serde(default)]
    pub pods: i64,
    /// Pods with an attached link.
    #[serde(default)]
    pub attached: i64,
    /// Pods whose link is waiting.
    #[serde(default)]
    pub waiting: i64,
    /// Frames delivered by the links.
    #[serde(default)]
    pub carried: i64,
    /// Frames dropped by the links.
    #[serde(default)]
    pub dropped: i64,
    /// Failures of the emulator.
    #[serde(default)]
    pub artifacts: i64,
    /// Maximum 99th percentile of lateness of the links, in microseconds.
    #[serde(default)]
    pub lateness_p99_us: i64,
    /// Reason why a pod has no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Details of the reason, or a note about the spec without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// JSON pointer (RFC 6901) from `spec` to the value that the message is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Remedy for a refused value or a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Reason why a pod has no link.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Reason {
    /// The pod or its interface does not exist yet.
    Waiting,
    /// No selected peer has an address.
    NoPeers,
    /// The pod uses the network of its host.
    HostNetwork,
    /// Another link, or a port of a Network, uses the interface.
    Conflict,
    /// The node's emulator does not respond.
    NodeUnavailable,
    /// The emulator could not attach the link.
    Failed,
    /// The spec is invalid.
    Refused,
}

/// Schema of a list of slices: a map by node, so that each agent owns its entry.
pub(super) fn nodes_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<NodeStatus>>::json_schema(generator), "node")
}

/// Schema of a list of conditions: a map by type.
pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<Condition>>::json_schema(generator), "type")
}

/// Marks a list as a map with this key, which server-side apply merges by entry.
pub(super) fn map_of(mut list: Schema, key: &str) -> Schema {
    list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".to_owned(), json!([key]));
    list
}
