//! Custom resources of the group `longwire.dev`.

// The attribute lint mistakes equal fields of two printer columns for duplicates.
#![allow(clippy::duplicated_attributes)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Returns the definitions of all resources, ordered by name.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Link::crd(), Network::crd(), Scenario::crd()]
}

/// Selects pods by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSelection {
    /// Labels of the pods; `{}` selects all.
    pub pod_selector: LabelSelector,
    /// Labels of the pods' namespaces; default: the namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// Peers of a link: pods or prefixes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "has(self.cidrs) != (has(self.podSelector) || has(self.namespaceSelector))"
).message("give either cidrs, or podSelector and namespaceSelector"))]
pub struct Peers {
    /// Labels of the pods; default: all pods of the selected namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// Labels of the pods' namespaces; default: the namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Prefixes, such as `10.0.3.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 64)))]
    #[x_kube(validation = Rule::new("self.all(c, isCIDR(c) || isIP(c))")
        .message("each entry must be an address or a prefix, such as 10.0.3.0/24"))]
    pub cidrs: Option<Vec<String>>,
}

/// State of a resource on one node; written by the node's agent.
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
    /// Reason why a pod has no link, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Details of the reason; without a reason, a note about the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// JSON pointer (RFC 6901), relative to `spec`, to the value to which the message refers.
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

/// Returns the schema of a list of slices: a map by node, so that each agent owns its entry.
fn nodes_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<NodeStatus>>::json_schema(generator), "node")
}

/// Returns the schema of a list of conditions: a map by type.
fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<Condition>>::json_schema(generator), "type")
}

/// Marks a list as a map with this key, so that server-side apply merges it entry by entry.
fn map_of(mut list: Schema, key: &str) -> Schema {
    list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".to_owned(), json!([key]));
    list
}

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
    /// Pods whose traffic crosses the link. Direction up is for packets that they send, down for
    /// packets that they receive.
    pub from: PodSelection,
    /// Peers whose traffic crosses the link; default: all traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Peers>,
    /// Interface in the pod; default: that of the default route; `all`: every interface
    /// except lo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub interface: Option<String>,
    /// Filter for packets that cross the link, as sent by the pod, such as `udp dst port 53`;
    /// default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub filter: Option<String>,
    /// Link options, as in a `[[link]]` table: for both directions, in `up` and `down` for one, and
    /// `preset`.
    #[serde(default)]
    #[schemars(schema_with = "options_schema")]
    pub link: Map<String, Value>,
    /// Seed of random streams; default: 1. Each pod has separate streams, derived from the seed and
    /// the names of the Link and the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
    /// Name of a Scenario in this namespace that changes the link over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub scenario: Option<String>,
    /// Start of the scenario (RFC 3339); default: the time at which a pod's link was attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub start_at: Option<String>,
    /// Priority among a pod's links that select the same packet: the lowest number wins, then the
    /// oldest Link. Default: 128 with `to` or `filter`, otherwise 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Treatment of traffic when the emulator has been killed: `open` (default) bypasses the link,
    /// `closed` blocks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<FailMode>,
}

/// Treatment of a link's traffic when the emulator has been killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// Traffic bypasses the link.
    Open,
    /// Traffic is blocked.
    Closed,
}

/// State of a link: one slice per node, and their sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// Generation of the spec to which the sums refer.
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
    /// State on each node; written by the node's agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Vec<NodeStatus>,
}

/// Returns the schema of options. The API server accepts any options; the node validates them.
fn options_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Link options, like in a [[link]] table: for both directions, `up` and \
                        `down` for one, and `preset`.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "format": "date-time",
        "nullable": true,
        "description": "Start of the scenario (RFC 3339); default: when the link of a pod was \
                        attached.",
    })
}

/// A network of links between pods.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "longwire.dev",
    version = "v1alpha1",
    kind = "Network",
    namespaced,
    status = "NetworkStatus",
    derive = "PartialEq",
    shortname = "lwn",
    category = "longwire",
    doc = "A topology between pods, run on their nodes.",
    printcolumn(name = "Ports", type_ = "integer", json_path = ".status.ports"),
    printcolumn(name = "Hosts", type_ = "integer", json_path = ".status.hosts"),
    printcolumn(
        name = "Placed",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Placed')].status"
    ),
    printcolumn(
        name = "Attached",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Attached')].status"
    ),
    printcolumn(
        name = "Faithful",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Faithful')].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// Topology, as TOML text or as an object, without `[ports]`, `[[host]]` and
    /// `[underlay]`, which are derived from `ports` and the nodes of the pods.
    #[schemars(schema_with = "topology_schema")]
    pub topology: Value,
    /// Pod of each port, by port name.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 256))]
    pub ports: BTreeMap<String, PodSelection>,
    /// Seed of random streams; default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
}

/// State of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Generation of the spec to which the placement refers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<i64>,
    /// Number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<i64>,
    /// UDP port of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<i64>,
    /// Pod and node of each port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "placement_schema")]
    pub placement: Vec<PortPlacement>,
    /// Address of each host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses_schema")]
    pub addresses: Vec<HostPlacement>,
    /// `Accepted`, `Placed`, `Attached` and `Faithful`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// State on each node; written by the node's agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Vec<NodeStatus>,
}

/// Placement of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortPlacement {
    /// Name of the port.
    pub port: String,
    /// Pod, such as `shop/cart-0`.
    pub pod: String,
    /// Node of the pod.
    pub node: String,
}

/// Address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlacement {
    /// Node.
    pub node: String,
    /// Address and UDP port of the node's emulator.
    pub address: String,
}

fn topology_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Topology, as TOML text or as an object.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn placement_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<PortPlacement>>::json_schema(generator), "port")
}

fn addresses_schema(generator: &mut SchemaGenerator) -> Schema {
    map_of(<Vec<HostPlacement>>::json_schema(generator), "node")
}

/// Timed changes of links.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "longwire.dev",
    version = "v1alpha1",
    kind = "Scenario",
    namespaced,
    derive = "PartialEq",
    shortname = "lws",
    category = "longwire",
    doc = "Timed changes of the Links that name it.",
    printcolumn(name = "First", type_ = "string", json_path = ".spec.steps[0].at"),
    printcolumn(name = "Every", type_ = "string", json_path = ".spec.repeat.every"),
    printcolumn(name = "Times", type_ = "integer", json_path = ".spec.repeat.times"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioSpec {
    /// Changes in order of time; each one adds to the previous ones.
    #[schemars(length(min = 1, max = 1000))]
    pub steps: Vec<Step>,
    /// Repetition; default: the last step holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Timed change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Step {
    /// Time since the start of the scenario or repetition, such as `90s`, `1m30s` or `500ms`.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub at: String,
    /// Options to set, as in `link` of a Link; null removes an option (`kubectl apply` drops nulls
    /// unless `--server-side` is given).
    #[schemars(schema_with = "options_schema")]
    pub set: Map<String, Value>,
}

/// Repetition of all steps; each repetition starts with the options of the Link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Repeat {
    /// Repetition period, such as `60s`; longer than all steps.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('100ms')")
        .message("every must be at least 100ms"))]
    pub every: String,
    /// Number of repetitions; default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub times: Option<i64>,
}
