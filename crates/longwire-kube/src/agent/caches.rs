//! Caches of an agent.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::Notify;

use crate::api::{Link, Scenario};
use crate::facts::{Labels, PodFacts, facts_of, labels_of};
use crate::metrics::Metrics;
use crate::plan::{ClusterState, needs_peers};
use crate::watch::{Watch, all, start};

/// Local copies of the resources that a plan depends on.
pub(super) struct Caches {
    client: Client,
    changed: Arc<Notify>,
    metrics: Metrics,
    links: Watch<Link>,
    scenarios: Watch<Scenario>,
    namespaces: Watch<(String, Labels)>,
    /// Pods of the node.
    own: Watch<PodFacts>,
    /// Pods of all nodes, once a link selects peers by labels.
    peers: Option<Watch<PodFacts>>,
}

impl Caches {
    pub fn start(client: &Client, node: &str, changed: &Arc<Notify>, metrics: &Metrics) -> Caches {
        let here = all().fields(&format!("spec.nodeName={node}"));
        let pods = Api::<Pod>::all(client.clone());
        Caches {
            links: start(
                Api::all(client.clone()),
                all(),
                spec_of_link,
                changed,
                metrics,
            ),
            scenarios: start(
                Api::all(client.clone()),
                all(),
                spec_of_scenario,
                changed,
                metrics,
            ),
            namespaces: start(Api::all(client.clone()), all(), labels_of, changed, metrics),
            own: start(pods, here, facts_of, changed, metrics),
            peers: None,
            client: client.clone(),
            changed: Arc::clone(changed),
            metrics: metrics.clone(),
        }
    }

    /// Returns the state of the cluster, or `None` while a required cache is incomplete.
    pub fn state(&mut self, node: &str) -> Option<ClusterState> {
        let links = self.links.cache.objects()?;
        if self.peers.is_none() && needs_peers(&links) {
            let pods = Api::<Pod>::all(self.client.clone());
            let watch = start(pods, all(), facts_of, &self.changed, &self.metrics);
            self.peers = Some(watch);
        }
        let mut pods = self.own.cache.objects()?;
        if let Some(peers) = &self.peers {
            // This node's watch is authoritative for its pods.
            let elsewhere = |pod: &PodFacts| pod.node.as_deref() != Some(node);
            let peers = peers.cache.objects()?;
            pods.extend(peers.into_iter().filter(elsewhere));
        }
        Some(ClusterState {
            node: node.to_owned(),
            links,
            scenarios: self.scenarios.cache.objects()?,
            pods,
            namespaces: self.namespaces.cache.objects()?.into_iter().collect(),
        })
    }
}

/// Drops the status, so that its changes do not trigger a new plan.
fn spec_of_link(link: Link) -> Link {
    Link {
        metadata: identity(link.metadata),
        spec: link.spec,
        status: None,
    }
}

fn spec_of_scenario(scenario: Scenario) -> Scenario {
    Scenario {
        metadata: identity(scenario.metadata),
        spec: scenario.spec,
    }
}

fn identity(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp,
        ..ObjectMeta::default()
    }
}
