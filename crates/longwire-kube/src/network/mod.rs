//! Networks: their placement on nodes, and the secrets that pass placements to the agents.

mod placement;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::{HostPlacement, PortPlacement};
pub use crate::network::placement::{Agents, place};
use crate::plan::{ResourceKey, resource_hash};

/// Label of secrets that contain a network.
pub const LABEL: &str = "longwire.dev/network";

/// Field of a secret that contains the network.
const NETWORK: &str = "network";

/// Field of a secret that contains the key.
const KEY: &str = "key";

/// A placed network: the contents of a secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacedNetwork {
    /// Namespace of the resource.
    pub namespace: String,
    /// Name of the resource.
    pub name: String,
    /// Generation of the resource's spec.
    pub generation: i64,
    /// UDP port of all hosts.
    pub udp_port: u16,
    /// Topology with ports and hosts.
    pub file: Map<String, Value>,
    /// Nodes with their addresses.
    pub hosts: Vec<HostPlacement>,
    /// Pod and node of each port, in port order.
    pub ports: Vec<PortPlacement>,
    /// Seed of all random streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Key of the hosts: 64 hexadecimal digits, in a separate field of the secret.
    #[serde(skip)]
    pub key: String,
}

impl PlacedNetwork {
    /// Parses a secret; returns `None` if it is invalid.
    pub fn of(secret: &Secret) -> Option<PlacedNetwork> {
        let data = secret.data.as_ref()?;
        let network = serde_json::from_slice(&data.get(NETWORK)?.0).ok()?;
        let key = String::from_utf8(data.get(KEY)?.0.clone()).ok()?;
        Some(PlacedNetwork { key, ..network })
    }

    /// Returns the secret's fields.
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        // Serialising strings and numbers cannot fail.
        let network = json!(self).to_string();
        BTreeMap::from([
            (NETWORK.to_owned(), ByteString(network.into_bytes())),
            (KEY.to_owned(), ByteString(self.key.clone().into_bytes())),
        ])
    }

    /// Returns the resource.
    pub fn resource(&self) -> ResourceKey {
        ResourceKey::new(&self.namespace, &self.name)
    }

    /// Returns the pods at a node's ports, such as `shop/cart-0`.
    pub fn pods_of(&self, node: &str) -> Vec<&str> {
        let here = self.ports.iter().filter(|port| port.node == node);
        here.map(|port| port.pod.as_str()).collect()
    }

    /// Returns the body of the request to a node; `None` if the node runs no part of the network.
    pub fn body(&self, node: &str) -> Option<Value> {
        self.hosts.iter().find(|host| host.node == node)?;
        // Refuse files: the node reads them as root, but the user may have permission only to
        // create Networks.
        let mut body = json!({ "file": self.file, "files": false });
        // A network on a single node needs no hosts.
        if self.hosts.len() > 1 {
            body["host"] = json!(node);
            body["key"] = json!(self.key);
        }
        if let Some(seed) = self.seed {
            body["seed"] = json!(seed);
        }
        Some(body)
    }
}

/// Returns the name of a network's secret.
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

/// Error in a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// The topology is neither text nor an object.
    #[error("the topology is neither TOML text nor an object")]
    Kind,
    /// The text is not TOML.
    #[error("{0}")]
    Toml(String),
    /// The topology contains a table that derives from the placement.
    #[error("`{0}` is derived from spec.ports and the pods; remove it")]
    Placed(&'static str),
    /// No frame crosses this link.
    #[error(
        "/link/{0}: no frame crosses this link; with more than two ports, add a matcher, such as \
         match = \"in-port=PORT\""
    )]
    Idle(usize),
}

/// Tables that derive from the placement.
const PLACED: [&str; 2] = ["ports", "host"];

/// Parses a topology.
///
/// # Errors
/// See [`TopologyError`].
pub fn read_topology(topology: &Value) -> Result<Map<String, Value>, TopologyError> {
    let file = match topology {
        Value::Object(file) => file.clone(),
        Value::String(text) => {
            toml::from_str(text).map_err(|error| TopologyError::Toml(error.to_string()))?
        }
        _ => return Err(TopologyError::Kind),
    };
    if let Some(name) = PLACED.iter().find(|name| file.contains_key(**name)) {
        return Err(TopologyError::Placed(name));
    }
    let underlay = file.get("underlay");
    if underlay.is_some_and(|underlay| underlay.get("key").is_some()) {
        return Err(TopologyError::Placed("underlay.key"));
    }
    Ok(file)
}

/// Refuses links that no frame crosses. The emulator only warns about such links, and its warnings
/// are not part of the status.
///
/// # Errors
/// [`TopologyError::Idle`].
pub fn check_links(file: &Map<String, Value>, ports: usize) -> Result<(), TopologyError> {
    let mut other_ways = ["path", "at", "unmatched"].iter();
    if ports <= 2 || other_ways.any(|way| file.contains_key(*way)) {
        return Ok(());
    }
    let decides =
        |name: &String| name.starts_with("match") || name == "between" || name == "template";
    let has_matcher = |link: &Map<String, Value>| {
        let directions = ["up", "down"].iter();
        let directions = directions.filter_map(|name| link.get(*name)?.as_object());
        let mut names = directions.flat_map(Map::keys).chain(link.keys());
        names.any(decides)
    };
    let is_idle = |link: &Value| link.as_object().is_some_and(|link| !has_matcher(link));
    let links = file.get("link").and_then(Value::as_array);
    let idle = links.and_then(|links| links.iter().position(is_idle));
    idle.map_or(Ok(()), |position| Err(TopologyError::Idle(position)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_object_are_the_same() {
        let text = "[[link]]\nname = \"wan\"\nmatch = \"dst=10.0.0.0/8\"\ndelay = \"20ms\"\n";
        let object = json!({ "link": [
        { "name": "wan", "match": "dst=10.0.0.0/8", "delay": "20ms" }] });
        let read = read_topology(&json!(text)).expect("it is right");
        assert_eq!(Value::Object(read), object);
        assert!(read_topology(&object).is_ok());
    }

    #[test]
    fn invalid_topologies_are_refused() {
        let wrong = |value: Value| read_topology(&value).expect_err("it is wrong");
        assert_eq!(wrong(json!(7)), TopologyError::Kind);
        assert!(matches!(wrong(json!("[[link")), TopologyError::Toml(_)));
        let ports = json!({ "ports": {} });
        assert_eq!(wrong(ports), TopologyError::Placed("ports"));
        let key = json!({ "underlay": { "key": "x" } });
        assert_eq!(wrong(key), TopologyError::Placed("underlay.key"));
    }

    #[test]
    fn idle_links_are_refused() {
        let check = |value: Value, ports| {
            let file = read_topology(&value).expect("a topology");
            check_links(&file, ports)
        };
        let plain = json!({ "link": [{ "match": "any" }, { "name": "wan", "delay": "20ms" }] });
        assert_eq!(check(plain.clone(), 4), Err(TopologyError::Idle(1)));
        assert_eq!(check(plain.clone(), 2), Ok(()));
        let mut with_path = plain;
        with_path["path"] = json!([{ "links": ["wan"] }]);
        assert_eq!(check(with_path, 4), Ok(()));
        let matchers = json!({ "link": [
        { "match": "in-port=a" }, { "between": ["10.0.0.0/30"] },
        { "down": { "match": "in-port=b" } }] });
        assert_eq!(check(matchers, 4), Ok(()));
    }
}
