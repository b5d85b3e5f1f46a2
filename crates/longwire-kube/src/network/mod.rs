//! Networks: their placement on nodes, and the secret by which agents receive it.

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

/// The label of secrets with a network.
pub const LABEL: &str = "longwire.dev/network";

/// The field of a secret with the network.
const NETWORK: &str = "network";

/// The field of a secret with the key.
const KEY: &str = "key";

/// A network that is placed: its topology, with the hosts that run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedNetwork {
    /// The namespace of the resource.
    pub namespace: String,
    /// The name of the resource.
    pub name: String,
    /// The generation of its spec.
    pub generation: i64,
    /// The UDP port of all hosts.
    pub udp_port: u16,
    /// The topology.
    pub file: Map<String, Value>,
    /// The nodes, with their addresses.
    pub hosts: Vec<HostPlacement>,
    /// The pods of all ports.
    pub ports: Vec<PortPlacement>,
    /// The seed of every random stream.
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

    /// Returns the pods of a node's ports, as in `shop/cart-0`.
    pub fn pods_of(&self, node: &str) -> Vec<&str> {
        let here = self.ports.iter().filter(|port| port.node == node);
        here.map(|port| port.pod.as_str()).collect()
    }

    /// Returns the body of the request to a node, or `None` if it runs no part.
    pub fn body(&self, node: &str, key: &str) -> Option<Value> {
        self.hosts.iter().find(|host| host.node == node)?;
        // The node reads files as root, for a user who may only create a Network.
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

/// A network with its key, as a secret has it.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretNetwork {
    /// The network.
    pub network: PlacedNetwork,
    /// The key: 64 hexadecimal digits.
    pub key: String,
}

impl SecretNetwork {
    /// Reads a secret; `None` for one of another form.
    pub fn of(secret: &Secret) -> Option<SecretNetwork> {
        let data = secret.data.as_ref()?;
        let network = serde_json::from_slice(&data.get(NETWORK)?.0).ok()?;
        let key = String::from_utf8(data.get(KEY)?.0.clone()).ok()?;
        Some(SecretNetwork { network, key })
    }

    /// Returns the secret's fields.
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        // A structure of strings and numbers has JSON.
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

/// Returns a new key of hosts.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn new_key() -> Result<String, ring::error::Unspecified> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
