//! Networks: their placement on nodes, and the secrets that carry it to the agents.

mod placement;
mod topology;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::{HostPlacement, PortPlacement};
use crate::plan::{ResourceKey, resource_hash};

pub use placement::{Agents, Placement, place};
pub use topology::{TopologyError, check_links, read_topology};

/// Label of secrets with a network.
pub const LABEL: &str = "longwire.dev/network";

/// Field of a secret with the network.
const NETWORK: &str = "network";

/// Field of a secret with the key.
const KEY: &str = "key";

/// A placed network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedNetwork {
    /// Namespace of the resource.
    pub namespace: String,
    /// Name of the resource.
    pub name: String,
    /// Generation of its spec.
    pub generation: i64,
    /// UDP port of all hosts.
    pub udp_port: u16,
    /// Topology.
    pub file: Map<String, Value>,
    /// Nodes with their addresses.
    pub hosts: Vec<HostPlacement>,
    /// Pods of all ports.
    pub ports: Vec<PortPlacement>,
    /// Seed of all random streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
}

impl PlacedNetwork {
    /// Returns the resource.
    pub fn key(&self) -> ResourceKey {
        ResourceKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Returns the pods of a node's ports, such as `shop/cart-0`.
    pub fn pods_of(&self, node: &str) -> Vec<&str> {
        let here = self.ports.iter().filter(|port| port.node == node);
        here.map(|port| port.pod.as_str()).collect()
    }

    /// Returns the body of the request to a node, or `None` if it runs no part.
    pub fn body(&self, node: &str, key: &str) -> Option<Value> {
        self.hosts.iter().find(|host| host.node == node)?;
        // The node reads files as root; the user may only be allowed to create Networks.
        let mut body = json!({ "file": self.file, "files": false });
        // A network on one node has no hosts.
        if self.hosts.len() > 1 {
            body["host"] = json!(node);
            body["key"] = json!(key);
        }
        if let Some(seed) = self.seed {
            body["seed"] = json!(seed);
        }
        Some(body)
    }
}

/// A network with its key, the content of a secret.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretNetwork {
    /// Network.
    pub network: PlacedNetwork,
    /// Key: 64 hexadecimal digits.
    pub key: String,
}

impl SecretNetwork {
    /// Parses a secret; `None` if it is invalid.
    pub fn of(secret: &Secret) -> Option<SecretNetwork> {
        let data = secret.data.as_ref()?;
        let network = serde_json::from_slice(&data.get(NETWORK)?.0).ok()?;
        let key = String::from_utf8(data.get(KEY)?.0.clone()).ok()?;
        Some(SecretNetwork { network, key })
    }

    /// Returns the secret's fields.
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        // Strings and numbers always serialise.
        let network = json!(self.network).to_string();
        BTreeMap::from([
            (NETWORK.to_owned(), ByteString(network.into_bytes())),
            (KEY.to_owned(), ByteString(self.key.clone().into_bytes())),
        ])
    }
}

/// Returns the name of the secret of a network.
pub fn secret_name(key: &ResourceKey) -> String {
    format!("longwire-network-{:016x}", resource_hash(key))
}

/// Creates a random key.
///
/// # Errors
/// If the system has no random bytes.
pub fn new_key() -> Result<String, ring::error::Unspecified> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
