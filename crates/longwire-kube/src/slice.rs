//! Writes to the status of resources, by server-side apply.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Link, Network, NodeStatus};
use crate::plan::ResourceKey;

/// The longest name of a field manager.
const MANAGER_MAX: usize = 128;

/// Returns the field manager of a node: it owns the node's slices, and nothing else.
pub fn field_manager(node: &str) -> String {
    let mut manager = format!("longwire-agent-{node}");
    // Names of nodes differ at their start, if they are as long as that.
    manager.truncate(MANAGER_MAX);
    manager
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
