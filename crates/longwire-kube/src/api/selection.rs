//! Selections of pods and addresses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Pods by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSelection {
    /// Labels of the pods; `{}` selects all.
    pub pod_selector: LabelSelector,
    /// Labels of the pods' namespaces; default: the namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// Peers of a link: pods or prefixes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "has(self.cidrs) != (has(self.podSelector) || has(self.namespaceSelector))"
).message("give either cidrs, or podSelector and namespaceSelector"))]
pub struct Peers {
    /// Labels of the pods; default: all pods of the selected namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// Labels of the pods' namespaces; default: the namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Prefixes, such as `10.0.3.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 64)))]
    #[x_kube(validation = Rule::new("self.all(c, isCIDR(c) || isIP(c))")
        .message("each entry must be an address or a prefix, such as 10.0.3.0/24"))]
    pub cidrs: Option<Vec<String>>,
}
