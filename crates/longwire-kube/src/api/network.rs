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
    /// The topology: TOML text, or the same as an object. It has no `[ports]`, `[[host]]`
    /// and `[underlay]`, which follow from `ports` and from where the pods are.
    #[schemars(schema_with = "topology_schema")]
    pub topology: Value,
    /// The pod of each port, by the port's name.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 256))]
    pub ports: BTreeMap<String, PodSelection>,
    /// The seed of every random stream; 1 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
}

/// The state of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// The generation of the spec that the placement is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<i64>,
    /// The number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<i64>,
    /// The UDP port of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<i64>,
    /// The pod and the node of each port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "placement_schema")]
    pub placement: Vec<PortPlacement>,
    /// The address of each host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses_schema")]
    pub addresses: Vec<HostPlacement>,
    /// `Accepted`, `Placed`, `Attached` and `Faithful`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The slice of each node, which its agent writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nodes_schema")]
    pub nodes: Vec<NodeStatus>,
}

/// The place of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortPlacement {
    /// The port's name.
    pub port: String,
    /// The pod, as in `shop/cart-0`.
    pub pod: String,
    /// The pod's node.
    pub node: String,
}

/// The address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlacement {
    /// The node.
    pub node: String,
    /// The address of its emulator, with the UDP port.
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
