//! The parts of pods and namespaces that affect plans.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// UID; differs from that of a later pod with the same name.
    pub uid: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Labels of the pod.
    pub labels: Labels,
    /// Node, once scheduled.
    pub node: Option<String>,
    /// Addresses, once assigned.
    pub addresses: Vec<IpAddr>,
    /// Whether the pod is on the host network.
    pub is_host_network: bool,
    /// Whether the pod's containers have ended, so that its addresses may be reused.
    pub has_ended: bool,
}

impl PodFacts {
    /// Extracts the facts of a pod.
    pub fn of(pod: Pod) -> PodFacts {
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

    /// Returns whether the pod is scheduled on a node and has not ended.
    pub fn is_on(&self, node: &str) -> bool {
        !self.has_ended && self.node.as_deref() == Some(node)
    }

    /// Returns the pod's name in requests to the node, such as `shop/cart-0`.
    pub fn target(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Extracts the name and labels of a watched namespace.
pub(crate) fn labels_of(namespace: Namespace) -> (String, Labels) {
    (namespace.name_any(), namespace.labels().clone())
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::{IpAddr, Labels, PodFacts};

    /// Returns a running pod in the namespace `shop`.
    pub(crate) fn pod(name: &str, labels: &[(&str, &str)], node: &str, last: u8) -> PodFacts {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        PodFacts {
            uid: format!("uid-{name}"),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            labels: labels.collect::<Labels>(),
            node: Some(node.to_owned()),
            addresses: vec![IpAddr::from([10, 0, 0, last])],
            is_host_network: false,
            has_ended: false,
        }
    }
}
