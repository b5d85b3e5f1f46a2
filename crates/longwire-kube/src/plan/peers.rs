//! Selectors, and the peers of pods.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use super::{ClusterState, Hindrance};
use crate::api::{LinkSpec, PodSelection};
use crate::facts::{Labels, PodFacts};

/// Selects pods by their labels and those of their namespaces.
#[derive(Clone, Debug)]
pub struct Selection {
    pods: Selector,
    namespaces: Namespaces,
}

/// Namespaces of selected pods.
#[derive(Clone, Debug)]
enum Namespaces {
    Own(String),
    Labelled(Selector),
}

impl Selection {
    /// Parses the selection of a resource in this namespace.
    ///
    /// # Errors
    /// If an operator is unknown or has invalid values.
    pub fn of(namespace: &str, selection: &PodSelection) -> Result<Selection, Hindrance> {
        let pods = Some(&selection.pod_selector);
        let pointers = ["/from/podSelector", "/from/namespaceSelector"];
        Selection::read(namespace, pods, &selection.namespace_selector, pointers)
    }

    fn read(
        namespace: &str,
        pods: Option<&LabelSelector>,
        namespaces: &Option<LabelSelector>,
        [of_pods, of_namespaces]: [&str; 2],
    ) -> Result<Selection, Hindrance> {
        let pods = pods.map(|selector| parse(selector, of_pods)).transpose()?;
        let namespaces = match namespaces {
            None => Namespaces::Own(namespace.to_owned()),
            Some(selector) => Namespaces::Labelled(parse(selector, of_namespaces)?),
        };
        Ok(Selection {
            pods: pods.unwrap_or_default(),
            namespaces,
        })
    }

    /// Returns whether a pod is selected. Pods in namespaces with unknown labels are not.
    pub fn selects(&self, pod: &PodFacts, namespaces: &BTreeMap<String, Labels>) -> bool {
        let is_in_namespace = match &self.namespaces {
            Namespaces::Own(namespace) => *namespace == pod.namespace,
            Namespaces::Labelled(selector) => namespaces
                .get(&pod.namespace)
                .is_some_and(|labels| selector.matches(labels)),
        };
        is_in_namespace && self.pods.matches(&pod.labels)
    }
}

fn parse(selector: &LabelSelector, pointer: &str) -> Result<Selector, Hindrance> {
    let refused =
        |reason: String| Hindrance::refused(pointer, reason, "use a label selector operator");
    let empty_values = selector.match_expressions.iter().flatten().find(|one| {
        let needs_values = matches!(one.operator.as_str(), "In" | "NotIn");
        needs_values && one.values.as_ref().is_none_or(Vec::is_empty)
    });
    if let Some(one) = empty_values {
        let reason = format!("{} of '{}' needs values", one.operator, one.key);
        return Err(refused(reason));
    }
    Selector::try_from(selector.clone()).map_err(|error| refused(error.to_string()))
}

/// The two ends of a link.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Pods whose traffic crosses the link.
    pub from: Selection,
    to: OtherEnd,
}

#[derive(Clone, Debug)]
enum OtherEnd {
    All,
    Prefixes(Vec<String>),
    Pods(Selection),
}

/// The part of a pod's traffic that crosses the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peering {
    /// All traffic.
    All,
    /// Traffic to and from prefixes, sorted as text.
    Prefixes {
        /// Prefixes whose traffic the pod shapes in both directions.
        both: Vec<String>,
        /// Prefixes of pods that shape the traffic that they send to this pod. This pod shapes only
        /// the traffic that it sends to them.
        up: Vec<String>,
    },
}

impl Ends {
    pub fn of(namespace: &str, spec: &LinkSpec) -> Result<Ends, Hindrance> {
        let from = Selection::of(namespace, &spec.from)?;
        let to = match &spec.to {
            None => OtherEnd::All,
            Some(to) => match &to.cidrs {
                Some(prefixes) => {
                    let mut prefixes = prefixes.clone();
                    prefixes.sort();
                    prefixes.dedup();
                    OtherEnd::Prefixes(prefixes)
                }
                None => {
                    let (pods, namespaces) = (to.pod_selector.as_ref(), &to.namespace_selector);
                    let pointers = ["/to/podSelector", "/to/namespaceSelector"];
                    OtherEnd::Pods(Selection::read(namespace, pods, namespaces, pointers)?)
                }
            },
        };
        Ok(Ends { from, to })
    }

    /// Returns the peers of a pod selected by `from`.
    pub fn peers_of(&self, pod: &PodFacts, state: &ClusterState) -> Peering {
        let to = match &self.to {
            OtherEnd::All => return Peering::All,
            OtherEnd::Prefixes(prefixes) => {
                return Peering::Prefixes {
                    both: prefixes.clone(),
                    up: Vec::new(),
                };
            }
            OtherEnd::Pods(to) => to,
        };
        let is_peer = to.selects(pod, &state.namespaces);
        let own: BTreeSet<IpAddr> = pod.addresses.iter().copied().collect();
        let (mut both, mut up) = (BTreeSet::new(), BTreeSet::new());
        for peer in &state.pods {
            if peer.has_ended || peer.uid == pod.uid || !to.selects(peer, &state.namespaces) {
                continue;
            }
            // The peer has the same link to this pod, so each end shapes the traffic that it sends.
            let is_mutual =
                is_peer && !peer.is_host_network && self.from.selects(peer, &state.namespaces);
            let addresses = peer.addresses.iter();
            let addresses = addresses.filter(|address| !own.contains(address));
            let prefixes = if is_mutual { &mut up } else { &mut both };
            prefixes.extend(addresses.map(prefix));
        }
        // Pods on the host network share an address, which may be in both sets.
        let up: BTreeSet<String> = up.difference(&both).cloned().collect();
        Peering::Prefixes {
            both: both.into_iter().collect(),
            up: up.into_iter().collect(),
        }
    }
}

/// Returns the prefix that contains only this address.
fn prefix(address: &IpAddr) -> String {
    let bits = match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    format!("{address}/{bits}")
}
