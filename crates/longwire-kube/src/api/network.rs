//! The resource `Network`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::selection::PodSelection;
use super::status::{NodeStatus, conditions_schema, map_of, nodes_schema};

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
    /// Generation of the spec that the placement is about.
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
    /// State on each node, written by its agent.
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
    /// Address and UDP port of its emulator.
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
