//! Writes to the status of resources, by server-side apply.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use ring::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Link, Network, NodeStatus};
use crate::plan::ResourceKey;

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

/// Returns the field manager of a node: it owns the node's slices, and nothing else. A name
/// of a node that leaves no room is cut, and ends with its hash.
pub fn field_manager(node: &str) -> String {
    let manager = format!("longwire-agent-{node}");
    if manager.len() <= MANAGER_MAX {
        return manager;
    }
    let hash = digest(&SHA256, node.as_bytes());
    let hash = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}"));
    let hash = format!(".{}", hash.collect::<String>());
    // Names of nodes are ASCII.
    let start: String = manager.chars().take(MANAGER_MAX - hash.len()).collect();
    start + &hash
}

/// A kind of resource with slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// `Link`.
    Link,
    /// `Network`.
    Network,
}

impl ResourceKind {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Link => "Link",
            ResourceKind::Network => "Network",
        }
    }
}

/// Makes a slice the only thing that a field manager owns in the status of a resource;
/// without a slice, it owns nothing.
///
/// # Errors
/// The API server does not answer, or refuses it.
pub async fn apply_slice(
    client: &Client,
    kind: ResourceKind,
    key: &ResourceKey,
    manager: &str,
    slice: Option<&NodeStatus>,
) -> Result<(), kube::Error> {
    let status: Value = match slice {
        Some(slice) => json!({ "nodes": [slice] }),
        None => json!({}),
    };
    match kind {
        ResourceKind::Link => apply_status::<Link>(client, key, manager, status).await,
        ResourceKind::Network => apply_status::<Network>(client, key, manager, status).await,
    }
}

/// Makes these fields the only ones that a field manager owns in the status of a resource.
/// A resource that does not exist is no error.
///
/// # Errors
/// The API server does not answer, or refuses it.
pub async fn apply_status<K>(
    client: &Client,
    key: &ResourceKey,
    manager: &str,
    status: Value,
) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let resources = Api::<K>::namespaced(client.clone(), &key.namespace);
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": key.name },
        "status": status,
    });
    let parameters = PatchParams::apply(manager).force();
    let patch = Patch::Apply(patch);
    match resources.patch_status(&key.name, &parameters, &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of a node has up to 253 characters, and the part that two share may be longer
    /// than a field manager.
    #[test]
    fn each_node_has_its_own_field_manager() {
        let common = "worker.".repeat(34);
        let ends = ["", "a", "b", "a.example", "b.example"];
        let nodes = ends.iter().map(|end| format!("{common}{end}"));
        let nodes = nodes.chain(["worker-1".to_owned(), "x".repeat(113), "x".repeat(114)]);
        let nodes: Vec<String> = nodes.collect();
        let managers: Vec<String> = nodes.iter().map(|node| field_manager(node)).collect();
        for (index, manager) in managers.iter().enumerate() {
            assert!(manager.len() <= MANAGER_MAX, "{manager}");
            assert!(manager.starts_with("longwire-agent-"), "{manager}");
            assert!(!managers[..index].contains(manager), "{manager}");
        }
        // Those of before, for names that fit.
        assert_eq!(managers[5], "longwire-agent-worker-1");
        assert_eq!(managers[6], format!("longwire-agent-{}", "x".repeat(113)));
        // The same in each process.
        assert_eq!(managers[7], field_manager(&nodes[7]));
    }
}
