//! Writes the status of resources by server-side apply.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use ring::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Link, Network, NodeStatus};
use crate::plan::ResourceKey;

/// Maximum length of a field manager's name, in bytes.
const MANAGER_MAX: usize = 128;

/// Returns the field manager that owns a node's slices. Long node names are truncated and followed
/// by a hash.
fn field_manager(node: &str) -> String {
    let manager = format!("longwire-agent-{node}");
    if manager.len() <= MANAGER_MAX {
        return manager;
    }
    let hash = digest(&SHA256, node.as_bytes());
    let hash = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}"));
    let hash = format!(".{}", hash.collect::<String>());
    // Node names are ASCII, so characters are bytes.
    let start: String = manager.chars().take(MANAGER_MAX - hash.len()).collect();
    start + &hash
}

/// Kind of a resource with slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A `Link`.
    Link,
    /// A `Network`.
    Network,
}

impl ResourceKind {
    /// Returns the kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Link => "Link",
            ResourceKind::Network => "Network",
        }
    }
}

/// Makes a slice the only field owned by a node's agent in a resource's status; `None` removes it.
///
/// # Errors
/// If the API server fails.
pub async fn apply_slice(
    client: &Client,
    kind: ResourceKind,
    key: &ResourceKey,
    node: &str,
    slice: Option<&NodeStatus>,
) -> Result<(), kube::Error> {
    let status: Value = match slice {
        Some(slice) => json!({ "nodes": [slice] }),
        None => json!({}),
    };
    let manager = field_manager(node);
    match kind {
        ResourceKind::Link => apply_status::<Link>(client, key, &manager, status).await,
        ResourceKind::Network => apply_status::<Network>(client, key, &manager, status).await,
    }
}

/// Makes these fields the only ones owned by a field manager in a resource's status. Does nothing
/// if the resource does not exist.
///
/// # Errors
/// If the API server fails.
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
    let patched = resources.patch_status(&key.name, &parameters, &patch).await;
    unless_status(404, patched)?;
    Ok(())
}

/// Returns whether a request succeeded; `false` if it failed with this status.
///
/// # Errors
/// If it failed with another status.
pub fn unless_status<T>(code: u16, result: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == code => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node names have up to 253 characters, and may share a prefix longer than the maximum length
    /// of a field manager's name.
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
        // Names that fit are kept.
        assert_eq!(managers[5], "longwire-agent-worker-1");
        assert_eq!(managers[6], format!("longwire-agent-{}", "x".repeat(113)));
        // The result is deterministic.
        assert_eq!(managers[7], field_manager(&nodes[7]));
    }
}
