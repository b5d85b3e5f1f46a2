//! Facts about pods and namespaces: the part of each object that plans need.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Its UID, which a pod of the same name that comes later does not have.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Its node, once it is scheduled.
    pub node: Option<String>,
    /// Its addresses, once it has some.
    pub addresses: Vec<IpAddr>,
    /// Whether it has the network of its machine.
    pub is_host_network: bool,
    /// Whether its containers have ended: its addresses may be those of another pod.
    pub has_ended: bool,
}

impl PodFacts {
    /// Reads a pod.
    pub fn of(pod: &Pod) -> PodFacts {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let addresses = status.and_then(|status| status.pod_ips.as_ref());
        let addresses = addresses.into_iter().flatten();
        let phase = status.and_then(|status| status.phase.as_deref());
        PodFacts {
            uid: pod.uid().unwrap_or_default(),
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            labels: pod.labels().clone(),
            node: spec.and_then(|spec| spec.node_name.clone()),
            addresses: addresses.filter_map(|ip| ip.ip.parse().ok()).collect(),
            is_host_network: spec.and_then(|spec| spec.host_network).unwrap_or(false),
            has_ended: matches!(phase, Some("Succeeded" | "Failed")),
        }
    }

    /// Returns whether it runs on a node, or is about to.
    pub fn is_on(&self, node: &str) -> bool {
        !self.has_ended && self.node.as_deref() == Some(node)
    }

    /// Returns the name by which the node knows the pod, as in `shop/cart-0`.
    pub fn target(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Reads a pod of a watch.
pub(crate) fn facts_of(pod: Pod) -> PodFacts {
    PodFacts::of(&pod)
}

/// Returns the name of a namespace of a watch, and its labels.
pub(crate) fn labels_of(namespace: Namespace) -> (String, Labels) {
    (namespace.name_any(), namespace.labels().clone())
}
